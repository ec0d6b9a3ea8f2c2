"""What other backends get: the same spans, whole, in requests of bounded size; and the byte budget."""

from __future__ import annotations

import json

from support.answers.client_forms import FORMS
from support.servers.otlp_server import OtlpServer
from support.starting.programs import attributes

from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

CALLS = """
import openai, sys
client = openai.OpenAI(base_url=sys.argv[1])
for number in range(int(sys.argv[2])):
    text = f"{number} " + "x" * int(sys.argv[3])
    client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": text}])
"""
CHAT = FORMS[0]


def test_a_stock_otlp_exporter_gets_them_whole_and_bounded(program, server):
    server.script([CHAT.reply()], repeat=True)
    run = program(CALLS)
    with OtlpServer() as other:
        done = run.instrumented(
            *("python", "agent.py", server.openai_url, "20", "300000"),
            OTEL_TRACES_EXPORTER="otlp",
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
            OTEL_EXPORTER_OTLP_ENDPOINT=other.url,
            OTEL_BSP_SCHEDULE_DELAY="600000",  # all at the end: what is bounded is more than one request
            PLAYHEAD_SPAN_BUDGET_BYTES=str(1 << 20),
        )
        assert done.returncode == 0, done.stderr
        received = {span.span_id: span for span in other.spans()}
    recorded = {span.span_id: span for span in run.spans()}
    assert len(recorded) == 41
    assert received == recorded
    assert 1 << 20 < other.largest_bytes <= 4 << 20
    calls = [span for span in recorded.values() if span.name == "chat gpt-4o"]
    assert all(len(attributes(span)[a.GEN_AI_INPUT_MESSAGES]) > 300_000 for span in calls)


def test_what_is_over_the_budget_is_on_the_tape(program, server):
    server.script([CHAT.reply()], repeat=True)
    run = program(CALLS)
    run.recorded(server.openai_url, "1", "30000", PLAYHEAD_SPAN_BUDGET_BYTES="20000")
    call = attributes(run.span("chat gpt-4o"))
    assert call["gen_ai.input.messages_ref"] == f"exchange:{call[a.PLAYHEAD_EXCHANGE_REF]}"
    assert a.GEN_AI_INPUT_MESSAGES not in call
    assert call[a.PLAYHEAD_DERIVED] == [a.GEN_AI_OUTPUT_MESSAGES]
    assert call[a.GEN_AI_OUTPUT_MESSAGES] != ""
    # The exchange has it; it is not there twice.
    assert run.facts(e.PLAYHEAD_BLOB) == []
    tape = MemoryTape(run.facts())
    (exchange,) = (one for one in tape.exchanges().values() if one.id.kind == "http")
    assert "0 " + "x" * 30000 in tape.read(exchange.ask.body).decode()


def test_a_length_limit_of_the_sdk_breaks_no_json(program, server):
    server.script([CHAT.reply()], repeat=True)
    run = program(CALLS)
    run.instrumented(
        *("python", "agent.py", server.openai_url, "1", "3000"),
        OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT="200",
    )
    call = attributes(run.span("chat gpt-4o"))
    assert call["gen_ai.input.messages_ref"].startswith("exchange:")
    assert json.loads(call[a.GEN_AI_OUTPUT_MESSAGES])[0]["role"] == "assistant"


def test_without_content(program, server):
    server.script([CHAT.reply()], repeat=True)
    run = program(CALLS)
    run.recorded(server.openai_url, "1", "10", PLAYHEAD_CONTENT="metadata")
    call = attributes(run.span("chat gpt-4o"))
    assert (call[a.GEN_AI_USAGE_INPUT_TOKENS], call[a.GEN_AI_REQUEST_MODEL]) == (12, "gpt-4o")
    names = (a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES, a.PLAYHEAD_DERIVED)
    assert [name for name in names if name in call] == []


def test_a_secret_that_is_echoed_is_on_no_span(program, server):
    from support.servers.scripted import json_reply

    secret = "tok-9f8e7d6c5b4a39281706"
    said = {"error": {"message": f"no such token: {secret}", "type": "x", "code": "bad_token"}}
    server.script([json_reply(said, 400)])
    run = program(CALLS)
    run.recorded(server.openai_url, "1", "10", OPENAI_API_KEY=secret)
    call = run.span("chat gpt-4o")
    assert attributes(call)[a.ERROR_TYPE] == "bad_token"
    assert call.status.message == "no such token: [redacted]"
    assert secret.encode() not in b"".join(span.SerializeToString() for span in run.spans())
