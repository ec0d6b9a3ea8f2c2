"""OTLP's JSON form to its binary one, and back.

It differs from protobuf's own JSON mapping in one thing that matters: ids are hexadecimal.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, cast

import msgspec
from google.protobuf import json_format
from google.protobuf.message import Message

from playhead_semconv.errors import MalformedOtlp

_IDS = frozenset(("traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id"))
_HOLDERS = (
    "resourceSpans",
    "scopeSpans",
    "spans",
    "links",
    "resourceLogs",
    "scopeLogs",
    "logRecords",
)
"""The lists that lead to objects with ids."""


def binary_of_json(body: bytes, kind: type[Message]) -> bytes:
    """The binary form of a request of ``kind``. `MalformedOtlp` if ``body`` is none.

    Unknown fields are ignored, as OTLP demands. An id that is not hexadecimal becomes empty, so that
    its span or record is rejected alone.
    """
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise MalformedOtlp(f"the body is not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise MalformedOtlp("the body is not a JSON object")
    _recode_ids(found, _base64_of_hex)
    message = kind()
    try:
        json_format.ParseDict(cast(dict[str, Any], found), message, ignore_unknown_fields=True)
        return message.SerializeToString()
    except (
        json_format.ParseError,
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
        OverflowError,
        RecursionError,
    ) as problem:
        raise MalformedOtlp(f"the body is no {kind.__name__}: {problem}") from None


def json_of(message: Message) -> bytes:
    """A response in JSON."""
    return json_format.MessageToJson(message, indent=None).encode()


def export_json(message: Message) -> bytes:
    """An export request in OTLP's JSON form, on one line."""
    found = json_format.MessageToDict(message, use_integers_for_enums=True)
    _recode_ids(found, _hex_of_base64)
    return msgspec.json.encode(found)


def _recode_ids(node: Any, recode: Callable[[Any], str]) -> None:
    for key, value in node.items():
        if key in _IDS:
            node[key] = recode(value)
        elif key in _HOLDERS and isinstance(value, list):
            for item in cast(list[Any], value):
                if isinstance(item, dict):
                    _recode_ids(item, recode)


def _hex_of_base64(value: Any) -> str:
    return base64.b64decode(value).hex()


def _base64_of_hex(value: Any) -> str:
    try:
        return base64.b64encode(bytes.fromhex(value)).decode()
    except (TypeError, ValueError):
        return ""
