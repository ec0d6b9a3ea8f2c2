"""OTLP `ResourceSpans` read with attributes, events and links as bytes.

A run may have 50,000 spans whose attributes are mostly the same. Read as bytes, an attribute that was
seen before is looked up and not decoded again. The messages have the field numbers of OTLP's
``opentelemetry/proto/trace/v1/trace.proto``; a nested message is on the wire what a field of bytes is.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE: Final = "playhead.raw"
_Field: Final = descriptor_pb2.FieldDescriptorProto
_MESSAGES: Final = {
    "ResourceSpans": {
        "resource": (1, _Field.TYPE_BYTES, _Field.LABEL_OPTIONAL),
        "scope_spans": (2, "ScopeSpans", _Field.LABEL_REPEATED),
    },
    "ScopeSpans": {"spans": (2, "Span", _Field.LABEL_REPEATED)},
    "Span": {
        "trace_id": (1, _Field.TYPE_BYTES, _Field.LABEL_OPTIONAL),
        "span_id": (2, _Field.TYPE_BYTES, _Field.LABEL_OPTIONAL),
        "parent_span_id": (4, _Field.TYPE_BYTES, _Field.LABEL_OPTIONAL),
        "name": (5, _Field.TYPE_STRING, _Field.LABEL_OPTIONAL),
        "kind": (6, _Field.TYPE_INT32, _Field.LABEL_OPTIONAL),
        "start_time_unix_nano": (7, _Field.TYPE_FIXED64, _Field.LABEL_OPTIONAL),
        "end_time_unix_nano": (8, _Field.TYPE_FIXED64, _Field.LABEL_OPTIONAL),
        "attributes": (9, _Field.TYPE_BYTES, _Field.LABEL_REPEATED),
        "events": (11, _Field.TYPE_BYTES, _Field.LABEL_REPEATED),
        "links": (13, _Field.TYPE_BYTES, _Field.LABEL_REPEATED),
        "status": (15, _Field.TYPE_BYTES, _Field.LABEL_OPTIONAL),
    },
}


def read_raw_spans(otlp: bytes) -> Any:
    """``ResourceSpans`` with the fields of `_MESSAGES`. `DecodeError` of protobuf if it is none."""
    return _resource_spans().FromString(otlp)


@cache
def _resource_spans() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="playhead/raw_spans.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, label) in fields.items():
            added = message.field.add(name=field, number=number, label=label)
            if isinstance(kind, str):
                added.type, added.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.ResourceSpans"))
