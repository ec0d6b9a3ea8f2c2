"""What exporters write into JSON that protobuf cannot say."""

import json
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from playhead_core.errors import MalformedOtlp, TooLarge
from playhead_receiver.ingest.otlp_json import binary_of_json

GOOD: dict[str, Any] = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "good"}


def spans_of(*spans: Any) -> list[Span]:
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    request = ExportTraceServiceRequest.FromString(binary_of_json(body, ExportTraceServiceRequest))
    return list(request.resource_spans[0].scope_spans[0].spans)


def with_value(value: Any) -> dict[str, Any]:
    return {**GOOD, "attributes": [{"key": "k", "value": value}]}


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("cut \ud83d", "cut \ufffd"),
        ("\udef0 begun", "\ufffd begun"),
        ("\udef0\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\udef0", "\ufffd\U0001f6f0"),
        ("whole \U0001f6f0 \ud83d", "whole \U0001f6f0 \ufffd"),
        ("no escape \\ud83d \ud83d", "no escape \\ud83d \ufffd"),
    ],
)
def test_half_a_character_becomes_the_one_for_what_is_unknown(said: str, kept: str):
    (span,) = spans_of(with_value({"stringValue": said}))
    assert span.attributes[0].value.string_value == kept


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_arrives(said: str):
    (span,) = spans_of(with_value({"stringValue": said}))
    # Python joins no halves; JSON's reader does.
    assert span.attributes[0].value.string_value == said.encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )


@pytest.mark.parametrize(
    "number", [1 << 63, -(1 << 63) - 1, str(1 << 63), 1e20, -1e300, 100000000000000000000]
)
def test_an_integer_of_more_than_64_bits_becomes_a_double(number: Any):
    inner = {"values": [{"intValue": number}, {"intValue": str((1 << 63) - 1)}]}
    (span,) = spans_of(with_value({"arrayValue": inner}))
    first, second = span.attributes[0].value.array_value.values
    assert first.double_value == float(number)
    assert second.int_value == (1 << 63) - 1


def test_numbers_that_json_has_not_are_texts():
    (span,) = spans_of(with_value({"doubleValue": "NaN"}))
    assert math.isnan(span.attributes[0].value.double_value)


@pytest.mark.parametrize(
    "bad",
    [
        with_value({"intValue": "many"}),
        with_value({"intValue": 1.5}),
        with_value({"arrayValue": {"values": [None]}}),
        with_value({"stringValue": "two", "boolValue": True}),
        with_value(
            json.loads('{"kvlistValue": {"values": [{"key": "", "value": ' * 60 + "{}" + "}]}}" * 60)
        ),
        {**GOOD, "droppedAttributesCount": -1},
        {**GOOD, "flags": 1 << 40},
        "a span",
        7,
        None,
    ],
)
def test_what_cannot_be_read_spoils_nothing_else(bad: Any):
    first, middle, last = spans_of(GOOD, bad, GOOD)
    assert first == last
    assert first.name == "good"
    assert middle == Span()


def test_much_of_little_is_refused_and_text_is_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("playhead_receiver.ingest.otlp_json.MOST_PARTS", 20)
    text = '[{"a": "\\"{["}]' * 100
    value = {"key": "k", "value": {"stringValue": text}}
    spans = {"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": [value]}]}]}]}
    found = binary_of_json(json.dumps(spans).encode(), ExportTraceServiceRequest)
    assert text.encode() in found
    for bomb in ('{"x": [' + "{}," * 20 + "{}]}", "[" * 21, '{"resourceSpans":[' + "{}," * 30 + '"{'):
        with pytest.raises(TooLarge, match="more than 20 objects and lists"):
            binary_of_json(bomb.encode(), ExportTraceServiceRequest)


def test_a_log_record_that_cannot_be_read_spoils_nothing_else():
    records = [{"body": {"stringValue": "good"}}, {"severityNumber": {}}]
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).encode()
    request = ExportLogsServiceRequest.FromString(binary_of_json(body, ExportLogsServiceRequest))
    first, second = request.resource_logs[0].scope_logs[0].log_records
    assert first.body.string_value == "good"
    assert not second.ListFields()


REQUESTS: dict[str, tuple[type[Message], dict[str, Any]]] = {
    "traces": (ExportTraceServiceRequest, {"resourceSpans": [{"scopeSpans": [{"spans": [GOOD]}]}]}),
    "logs": (
        ExportLogsServiceRequest,
        {"resourceLogs": [{"scopeLogs": [{"scope": {"name": "s"}, "logRecords": [GOOD]}]}]},
    ),
    "metrics": (
        ExportMetricsServiceRequest,
        {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "good"}]}]}]},
    ),
}
OLDER = {
    "scopeSpans": "instrumentationLibrarySpans",
    "scopeLogs": "instrumentationLibraryLogs",
    "scopeMetrics": "instrumentationLibraryMetrics",
    "scope": "instrumentationLibrary",
    "logRecords": "logs",
}


def spelt(request: dict[str, Any], spelling: Callable[[str], str]) -> bytes:
    return re.sub(
        rb'"(\w+)":',
        lambda name: b'"%s":' % spelling(name[1].decode()).encode(),
        json.dumps(request).encode(),
    )


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


@pytest.mark.parametrize("signal", REQUESTS)
def test_other_spellings_of_names_and_ids_are_understood(signal: str):
    kind, request = REQUESTS[signal]
    binary = binary_of_json(json.dumps(request).encode(), kind)
    assert b"good" in binary or signal == "logs"
    for spelling in (
        snake,
        lambda name: OLDER.get(name, name),
        lambda name: snake(OLDER.get(name, name)),
    ):
        assert binary_of_json(spelt(request, spelling), kind) == binary
    message = kind.FromString(binary)
    for names in (False, True):  # protobuf's own JSON, with ids in base64
        theirs = json_format.MessageToJson(message, preserving_proto_field_name=names)
        assert binary_of_json(theirs.encode(), kind) == binary


@pytest.mark.parametrize("signal", REQUESTS)
def test_what_has_no_items_where_they_belong_is_refused(signal: str):
    kind, request = REQUESTS[signal]
    (top,) = request
    (inner,) = request[top][0]
    for body in (
        {"event": "hello"},
        {top[:-1]: []},
        {"resource": {}},
        {top: [{"resource": {}, inner.lower(): request[top][0][inner]}]},
        {top: [{inner: [{"items": [GOOD]}]}]},
        next(other for name, (_, other) in REQUESTS.items() if name != signal),
    ):
        with pytest.raises(MalformedOtlp, match="instead of"):
            binary_of_json(json.dumps(body).encode(), kind)
    for empty in ({}, {top: []}, {top: [{}]}, {top: [{"resource": {}, "entity": 1}]}, {top: None}):
        assert len(binary_of_json(json.dumps(empty).encode(), kind)) < 10


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"resourceSpans": 3}', b'{"a": "\\ud83d}', b'{"a": "\\x"}']
)
def test_what_is_no_request_is_refused(body: bytes):
    with pytest.raises(MalformedOtlp):
        binary_of_json(body, ExportTraceServiceRequest)
