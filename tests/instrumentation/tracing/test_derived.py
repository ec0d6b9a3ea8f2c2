"""What the bytes of an attempt mean, though a part of them is stored without its content coding."""

import json
import zlib

from support.servers.scripted import openai_chat
from support.tapes.sessions import recording

from playhead_core.credentials import mask
from playhead_core.facts import End, ExchangeId
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange, MessageRequest
from playhead_instrumentation.session.session import current
from playhead_instrumentation.tracing.attempts import Attempt
from playhead_instrumentation.tracing.derived import meaning_of
from playhead_semconv import attributes as a


def test_an_answer_that_is_stored_decoded_from_a_credential_on_is_whole():
    data = json.dumps(openai_chat.completion("the last words of the answer " + "x " * 300)).encode()
    packer = zlib.compressobj(wbits=31)
    first, rest = packer.compress(data[:200]) + packer.flush(zlib.Z_SYNC_FLUSH), data[200:]
    attempt = Attempt(
        ExchangeId(1, "http", 0),
        b"",
        "POST",
        "http://provider/v1/chat/completions",
        b'{"model": "m", "messages": []}',
        0,
        status_code=200,
        response_headers=[("content-type", "application/json"), ("content-encoding", "gzip")],
        chunks=[first, rest],
        unpacked=["", "gzip"],
        end=End("complete"),
    )
    assert "the last words" in str(meaning_of(attempt)[a.GEN_AI_OUTPUT_MESSAGES])


def test_a_call_over_grpc_is_derived_from_what_is_on_the_tape():
    known = "zq77opaquevaluewithoutashape5521"
    with recording():
        session = current()
        assert session is not None
        session.redactor.learn(known)
        exchange = MessageExchange(session, MessageRequest("grpc", "host/method", b"", {}), "call", {})
        exchange.call.scrub = session.redactor.response("application/grpc", "")
        exchange.attempt = Attempt(exchange.call.id, b"", "POST", "grpc://host/method", b"", 0)
        exchange.received(f"say {known}".encode(), None)
        exchange.finished(None)
    assert exchange.attempt.chunks == [b"say " + mask(len(known))]
