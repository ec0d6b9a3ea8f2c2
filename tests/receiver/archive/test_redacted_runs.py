"""Credentials are taken out of every value that a fact can hold."""

import zlib

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.handmade import HandMade

from playhead_core.otlp.any_values import set_attributes
from playhead_core.tape.folds import fold_exchanges
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_core.tape.span_starts import starts_of
from playhead_receiver.archive.redacted_runs import Redaction
from playhead_semconv import attributes as a

SECRET = "correct-horse-battery"


def test_the_starts_that_an_ask_carries_are_redacted():
    made = HandMade().start()
    attempt = made.begin("POST", kind=3, carried=True, url__full=f"http://provider/{SECRET}", n=1)
    made.exchange(span=attempt)
    redaction = Redaction([SECRET])
    facts = redaction.tape(MemoryTape(made.facts), made.facts, "now")
    (ask,) = (fact for fact in facts if fact.exchange is not None and starts_of(fact))
    (start,) = starts_of(ask)
    assert start.attributes["url.full"] == "http://provider/[redacted]"
    assert (start.attributes["n"], redaction.places) == (1, 1)
    assert ask.attributes[a.PLAYHEAD_REDACTED_COUNT] == 1


OPAQUE = "zq77opaquevaluewithoutashape5521"


def span_everywhere() -> ResourceSpans:
    """A span of another sender with a credential in every place that can hold one."""
    made = ResourceSpans()
    set_attributes(made.resource.attributes, {"vendor.access_token": OPAQUE, "service.name": "shop"})
    scope = made.scope_spans.add()
    scope.scope.name, scope.scope.version = f"lib {OPAQUE}", OPAQUE
    set_attributes(scope.scope.attributes, {"note": OPAQUE})
    span = scope.spans.add(name=f"ask {OPAQUE}", trace_state=f"vendor={OPAQUE}")
    span.status.message = f"refused {OPAQUE}"
    named = {
        "note": ["a", OPAQUE],
        f"user.{OPAQUE}": "x",
        "http.request.header.authorization": ["Bearer OTHERunderitsname99"],
        "http.request.header.x_vendor_key": ["OTHERunderitsname99"],
        "http.response.header.x-ratelimit-remaining-tokens": ["918"],
        "db.password": 918273645546372,
        "map": {"client_secret": "OTHERunderitsname99", OPAQUE: 1},
        "plain": "as it was",
    }
    set_attributes(span.attributes, named)
    set_attributes(span.events.add(name=f"got {OPAQUE}").attributes, {"password": "OTHERunderitsname99"})
    set_attributes(span.links.add(trace_state=f"a={OPAQUE}").attributes, {OPAQUE: OPAQUE})
    return made


def test_a_stored_span_is_redacted_in_every_place():
    whole = Redaction([OPAQUE]).span(span_everywhere().SerializeToString())
    for gone in (OPAQUE, "OTHERunderitsname99", "918273645546372"):
        assert gone.encode() not in whole and gone not in str(ResourceSpans.FromString(whole))
    assert b"as it was" in whole and b"shop" in whole and b"918" in whole


def test_the_names_and_resources_of_facts_are_redacted():
    named = {"openai.api_key": "OTHERunderitsname99", OPAQUE: 1, "plain": ["as it was"]}
    kept = Redaction([OPAQUE]).values_of(named)
    assert kept == {"openai.api_key": "[redacted]", "[redacted]": 1, "plain": ["as it was"]}
    flat = {a.PLAYHEAD_HTTP_HEADERS: ["x-api-key", "OTHERunderitsname99", "accept", "*/*"]}
    kept = Redaction([]).values_of(flat)[a.PLAYHEAD_HTTP_HEADERS]
    assert kept == ["x-api-key", "[redacted]", "accept", "*/*"]


@pytest.mark.parametrize("wbits", [31, -15])
def test_a_compressed_answer_is_redacted_and_stays_readable_to_its_end(wbits: int):
    body = b'{"note": "%s", "rest": "as it was"}' % OPAQUE.encode()
    packer = zlib.compressobj(wbits=wbits)
    data = packer.compress(body) + packer.flush()
    made = HandMade().start()
    coding = "gzip" if wbits == 31 else "deflate"
    headers = ("content-encoding", coding, "content-length", str(len(data)))
    made.exchange(chunks=(data[:9], data[9:]), headers=headers)
    facts = Redaction([OPAQUE]).tape(MemoryTape(made.facts), made.facts, "now")
    (exchange,) = fold_exchanges(facts).values()
    whole = b"".join(part.data.inline or b"" for part in exchange.parts)
    assert all(part.data.inline for part in exchange.parts)
    unpack = zlib.decompressobj(wbits)
    text = unpack.decompress(whole)
    assert unpack.eof and b"as it was" in text and OPAQUE.encode() not in text
    assert exchange.head[a.PLAYHEAD_HTTP_HEADERS][-1] == str(len(whole))


def test_a_redacted_number_stays_one():
    redaction = Redaction([])
    assert redaction.body(b'{"password": 84123456, "n": 1}') == b'{"password": 99999999, "n": 1}'
    assert redaction.value(84123456, "db.password") == 99999999
    assert redaction.value(8412345678901234567, "db.password") == (1 << 63) - 1
