"""Converts OTLP's JSON form to its binary form, and back.

It differs from protobuf's own JSON mapping in one important point: ids are hexadecimal.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, cast

import msgspec
from google.protobuf import json_format
from google.protobuf.message import Message
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from playhead_core.errors import MalformedOtlp, TooLarge
from playhead_receiver.ingest.encodings import SMALLER

_IDS = frozenset(("traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id"))
_HOLDERS = frozenset(
    (
        "resourceSpans",
        "scopeSpans",
        "spans",
        "links",
        "resourceLogs",
        "scopeLogs",
        "logRecords",
        "resourceMetrics",
        "scopeMetrics",
        "metrics",
        "gauge",
        "sum",
        "histogram",
        "exponentialHistogram",
        "summary",
        "dataPoints",
        "exemplars",
    )
)
"""Names of the lists and objects that contain objects with ids."""

_OLDER = {
    "instrumentationLibrarySpans": "scopeSpans",
    "instrumentationLibraryLogs": "scopeLogs",
    "instrumentationLibraryMetrics": "scopeMetrics",
    "instrumentationLibrary": "scope",
    "logs": "logRecords",
}
"""Names of OTLP before 0.16, and what they are called today."""

_CAPITAL = re.compile("[A-Z]")
_SPELLINGS = _OLDER | {
    _CAPITAL.sub(lambda found: f"_{found[0].lower()}", name): _OLDER.get(name, name)
    for name in (*_HOLDERS, *_OLDER)
    if _CAPITAL.search(name)
}
"""Other spellings of these names, as protobuf's own JSON and older senders have them."""

_LEVELS: dict[str, tuple[str, str, str]] = {
    "ExportTraceServiceRequest": ("resourceSpans", "scopeSpans", "spans"),
    "ExportLogsServiceRequest": ("resourceLogs", "scopeLogs", "logRecords"),
    "ExportMetricsServiceRequest": ("resourceMetrics", "scopeMetrics", "metrics"),
}
"""The lists in each other that lead to the items of a request."""
_NEXT_TO_LISTS = frozenset(("resource", "scope", "schemaUrl", "schema_url"))

_ITEMS: dict[str, type[Message]] = {"spans": Span, "logRecords": LogRecord}
"""Lists whose items are rejected individually."""

_ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""A JSON escape: a pair of surrogates (group 1), a lone surrogate (group 2), or anything else."""

MOST_PARTS = 1 << 20
"""Most objects and lists in a request: enough for 40,000 spans with ten attributes each."""
_STRING_OR_PART = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[{\[]', re.DOTALL)
_QUOTE = ord('"')

_INT64 = range(-(1 << 63), 1 << 63)

_UNREADABLE = (
    json_format.ParseError,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    OverflowError,
    RecursionError,
)


def binary_of_json(body: bytes, kind: type[Message]) -> bytes:
    """The binary form of a request of ``kind``.

    `MalformedOtlp` if ``body`` is no such request; `TooLarge` if it has too many objects and lists.
    Unknown fields are ignored, as OTLP demands, unless they are there in place of the items. Ids may be
    hexadecimal, or base64 as in protobuf's own JSON. Any other id becomes empty, and so does a span or
    record that cannot be read, so that it is rejected individually. JavaScript's exporter
    writes values that protobuf cannot express: a lone surrogate becomes U+FFFD, and an integer beyond 64
    bits becomes a double, as its protobuf exporters do.
    """
    _check_parts(body)
    found = _decoded(body)
    if not isinstance(found, dict):
        raise MalformedOtlp("the body is not a JSON object")
    request = cast(dict[str, Any], found)
    _recode_ids(request, _base64_of_id)
    _check_levels(request, _LEVELS[kind.__name__])
    try:
        return _read(request, kind).SerializeToString()
    except _UNREADABLE:
        pass
    try:
        _widen(request)
        _empty_unreadable(request)
        return _read(request, kind).SerializeToString()
    except _UNREADABLE as problem:
        raise MalformedOtlp(f"the body is no {kind.__name__}: {problem}") from None


def _check_parts(body: bytes) -> None:
    """`TooLarge` for bodies that would need too much memory: a part of two bytes takes some hundred."""
    if body.count(b"{") + body.count(b"[") <= MOST_PARTS:
        return
    parts = (one for one in _STRING_OR_PART.finditer(body) if one[0][0] != _QUOTE)
    if next(islice(parts, MOST_PARTS, None), None) is not None:
        raise TooLarge(f"the request has more than {MOST_PARTS} objects and lists", hint=SMALLER)


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        mended = _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[2] else escape[0], body)
        if mended != body:
            return _decoded(mended)
        raise MalformedOtlp(f"the body is not JSON: {problem}") from None


def _read(found: dict[str, Any], kind: type[Message]) -> Message:
    return json_format.ParseDict(found, kind(), ignore_unknown_fields=True)


def _widen(found: Any) -> None:
    waiting = [found]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            value = cast(dict[str, Any], node)
            waiting += value.values()
            if "intValue" in value and _is_beyond(value["intValue"]):
                value["doubleValue"] = float(value.pop("intValue"))


def _is_beyond(number: Any) -> bool:
    try:
        return math.isfinite(float(number)) and int(number) not in _INT64
    except (TypeError, ValueError, OverflowError):
        return False


def _empty_unreadable(node: dict[str, Any]) -> None:
    for key, value in node.items():
        if not isinstance(value, list):
            continue
        items = cast(list[Any], value)
        if key in _ITEMS:
            node[key] = [item if _is_readable(item, _ITEMS[key]) else {} for item in items]
        elif key in _HOLDERS:
            for item in items:
                if isinstance(item, dict):
                    _empty_unreadable(cast(dict[str, Any], item))


def _is_readable(item: Any, kind: type[Message]) -> bool:
    try:
        _read(item, kind)
    except _UNREADABLE:
        return False
    return True


def json_of(message: Message) -> bytes:
    """A response message in JSON."""
    return json_format.MessageToJson(message, indent=None).encode()


def export_json(message: Message) -> bytes:
    """An export request in OTLP's JSON form, on one line."""
    found = json_format.MessageToDict(message, use_integers_for_enums=True)
    _recode_ids(found, _hex_of_base64)
    return msgspec.json.encode(found)


def _recode_ids(node: Any, recode: Callable[[Any], str]) -> None:
    for spelt in node.keys() & _SPELLINGS.keys():
        node.setdefault(_SPELLINGS[spelt], node.pop(spelt))
    for key, value in node.items():
        if key in _IDS:
            node[key] = recode(value)
        elif key in _HOLDERS:
            for item in cast(list[Any], value) if isinstance(value, list) else (value,):
                if isinstance(item, dict):
                    _recode_ids(item, recode)


def _hex_of_base64(value: Any) -> str:
    return base64.b64decode(value).hex()


def _base64_of_id(value: Any) -> str:
    if isinstance(value, str) and len(value) in _BASE64_LENGTHS:
        return value
    try:
        return base64.b64encode(bytes.fromhex(value)).decode()
    except (TypeError, ValueError):
        return ""


_BASE64_LENGTHS = (12, 24)
"""Lengths of span ids and trace ids in base64; in hexadecimal they have 16 and 32 digits."""


def _check_levels(node: dict[str, Any], levels: Sequence[str], is_top: bool = True) -> None:
    """`MalformedOtlp` if a list that leads to the items is missing, and something unknown is there."""
    name, *inner = levels
    if name not in node:
        for key, value in node.items():
            is_part = key not in _NEXT_TO_LISTS and value and isinstance(value, list | dict)
            if is_top or is_part:
                raise MalformedOtlp(f"the body has {key[:100]!r} instead of {name!r}")
    items = node.get(name)
    if inner and isinstance(items, list):
        for item in cast(list[Any], items):
            if isinstance(item, dict):
                _check_levels(cast(dict[str, Any], item), inner, is_top=False)
