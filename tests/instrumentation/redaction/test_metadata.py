"""Without content, a recording holds what the registry calls metadata, on every fact and span."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import SpanContext, StatusCode, TraceFlags, TraceState
from support.tapes.recorded_calls import ListSink

from playhead_core.facts import Content, ExchangeId, Fact
from playhead_core.tape.frames import encode
from playhead_exporter.encoded import encode_span
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.redaction.metadata import Metadata, MetadataSink
from playhead_instrumentation.tracing.processor import RecordingProcessor
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.metadata import DIGESTED, KEPT

NAMES = [value for name, value in vars(a).items() if name.isupper()]
EVENTS = [value for name, value in vars(e).items() if name.isupper()]
WORD = "CANARY"


def test_the_registry_decides_about_each_attribute():
    given = {name: WORD for name in [*NAMES, "unknown.name", f"name.{WORD}"]}
    del given[a.PLAYHEAD_ASK_SPANS]
    kept = Metadata(Redactor(content=False)).attributes(given)
    assert set(kept) == (KEPT | DIGESTED) - {a.PLAYHEAD_ASK_SPANS}
    assert {name for name, value in kept.items() if WORD in str(value)} <= KEPT
    for name in (
        a.PLAYHEAD_ERROR_MESSAGE,
        a.PLAYHEAD_ERROR_ARGS,
        a.DB_QUERY_TEXT,
        a.GEN_AI_INPUT_MESSAGES,
    ):
        assert name not in kept


@pytest.mark.parametrize("name", EVENTS)
def test_no_fact_has_content(name: str):
    sink = ListSink()
    content = {
        name: [WORD] if name in (a.PLAYHEAD_ERROR_ARGS,) else WORD for name in NAMES if name not in KEPT
    }
    content[a.PLAYHEAD_HTTP_HEADERS] = ["x-note", WORD, f"x-{WORD}", "1", "content-type", "text/plain"]
    content[a.PLAYHEAD_READ_KIND] = f"file/open ./{WORD}.txt"
    content[a.PLAYHEAD_ASK_KEY] = f"open {WORD}"
    content[a.URL_FULL] = f"https://host/path?q={WORD}"
    content[a.PLAYHEAD_ASK_SPANS] = [{"span_id": "1", "attributes": {WORD: 1, a.DB_QUERY_TEXT: WORD}}]
    body = Content.of(WORD.encode())
    MetadataSink(sink, Redactor(content=False)).append(
        Fact(1, 1, name, exchange=ExchangeId(1, "file", 0), attributes=content, body=body)
    )
    (fact,) = sink.facts
    assert WORD.encode() not in encode(fact)
    assert fact.attributes[a.PLAYHEAD_HTTP_HEADERS] == ["content-type", "text/plain"]
    assert fact.attributes[a.URL_FULL] == "https://host/path"
    assert (fact.body.size, fact.body.digest) == (len(WORD), b"")


@pytest.mark.parametrize(
    "kind, key, is_kept",
    [
        ("http", "POST http://host/v1/chat", True),
        ("tool", "look", True),
        ("mcp", "tools/call look", True),
        ("mcp", f"resources/read file:///{WORD}", False),
        ("process", "sh: cat", True),
        ("process", f"sh: A={WORD}", False),
        ("pipe", WORD, False),
    ],
)
def test_keys_of_names_and_addresses_are_kept(kind: str, key: str, is_kept: bool):
    sink = ListSink()
    fact = Fact(
        1,
        1,
        e.PLAYHEAD_EXCHANGE_REQUEST,
        exchange=ExchangeId(1, kind, 0),
        attributes={a.PLAYHEAD_ASK_KEY: key},
    )
    MetadataSink(sink, Redactor(content=False)).append(fact)
    kept = sink.facts[0].attributes[a.PLAYHEAD_ASK_KEY]
    assert (kept == key) is is_kept and WORD not in kept


class Ended(RecordingProcessor):
    def __init__(self) -> None:
        super().__init__()
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def test_a_span_of_others_is_reduced_and_exported_by_the_program_untouched():
    sink, ended, processor = ListSink(), Ended(), RecordingProcessor()
    redactor = Redactor(content=False)
    processor.connect(MetadataSink(sink, redactor), lambda: 5, ended, redactor)
    provider = TracerProvider(resource=Resource({"service.name": "shop", "note": WORD}))
    provider.add_span_processor(processor)
    state = TraceState([("vendor", WORD), ("ot", "th:8")])
    other = SpanContext(1, 2, True, TraceFlags(1), state)
    named: dict[str, Any] = {
        WORD: 1,
        a.DB_QUERY_TEXT: WORD,
        a.GEN_AI_TOOL_NAME: "look",
        a.GEN_AI_USAGE_INPUT_TOKENS: 7,
        a.URL_FULL: f"https://host/path?q={WORD}",
        "http.request.header.x": [WORD],
    }
    span = provider.get_tracer("lib", attributes={"note": WORD}).start_span(
        f"work {WORD}",
        trace.set_span_in_context(trace.NonRecordingSpan(other)),
        attributes=named,
        links=[trace.Link(other, {"note": WORD})],
    )
    span.add_event(f"got {WORD}", {"note": WORD})
    span.record_exception(ValueError(WORD))
    span.set_status(StatusCode.ERROR, WORD)
    span.end()
    (reduced,) = ended.spans
    assert WORD.encode() not in encode_span(reduced, whole=True)
    assert WORD.encode() not in b"".join(map(encode, sink.facts))
    assert dict(reduced.attributes or {}) == {
        a.GEN_AI_TOOL_NAME: "look",
        a.GEN_AI_USAGE_INPUT_TOKENS: 7,
        a.URL_FULL: "https://host/path",
    }
    assert reduced.name.startswith("lib ") and reduced.status.status_code is StatusCode.ERROR
    assert dict(reduced.events[1].attributes or {}) == {"exception.type": "ValueError"}
    assert dict(reduced.get_span_context().trace_state) == {"ot": "th:8"}
    assert span.name == f"work {WORD}"
