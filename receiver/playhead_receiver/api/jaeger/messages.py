"""The messages of `jaeger.storage.v2`, with the numbers that Jaeger's remote storage uses.

The protocol is Jaeger's (github.com/jaegertracing/jaeger-idl, proto/storage/v2, Apache-2.0). A
structured filter (field 9 of a query) is left as bytes: the capabilities do not offer it.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
)
from opentelemetry.proto.trace.v1 import trace_pb2

PACKAGE = "jaeger.storage.v2"
TIME = ".google.protobuf.Timestamp"
DURATION = ".google.protobuf.Duration"

_MESSAGES: dict[str, list[tuple[str, int, str]]] = {
    "GetTraceParams": [("trace_id", 1, "bytes"), ("start_time", 2, TIME), ("end_time", 3, TIME)],
    "GetTracesRequest": [("query", 1, "*GetTraceParams")],
    "GetServicesRequest": [],
    "GetServicesResponse": [("services", 1, "*string")],
    "GetOperationsRequest": [("service", 1, "string"), ("span_kind", 2, "string")],
    "Operation": [("name", 1, "string"), ("span_kind", 2, "string")],
    "GetOperationsResponse": [("operations", 1, "*Operation")],
    "KeyValue": [("key", 1, "string"), ("value", 2, "AnyValue")],
    "AnyValue": [
        ("string_value", 1, "|string"),
        ("bool_value", 2, "|bool"),
        ("int_value", 3, "|int64"),
        ("double_value", 4, "|double"),
        ("array_value", 5, "|ArrayValue"),
        ("kvlist_value", 6, "|KeyValueList"),
        ("bytes_value", 7, "|bytes"),
    ],
    "KeyValueList": [("values", 1, "*KeyValue")],
    "ArrayValue": [("values", 1, "*AnyValue")],
    "TraceQueryParameters": [
        ("service_name", 1, "string"),
        ("operation_name", 2, "string"),
        ("attributes", 3, "*KeyValue"),
        ("start_time_min", 4, TIME),
        ("start_time_max", 5, TIME),
        ("duration_min", 6, DURATION),
        ("duration_max", 7, DURATION),
        ("search_depth", 8, "int32"),
        ("filter", 9, "bytes"),
    ],
    "FindTracesRequest": [("query", 1, "TraceQueryParameters")],
    "FindTraceIDsRequest": [("query", 1, "TraceQueryParameters")],
    "FoundTraceID": [("trace_id", 1, "bytes"), ("start", 2, TIME), ("end", 3, TIME)],
    "FindTraceIDsResponse": [("trace_ids", 1, "*FoundTraceID")],
    "ServiceSummary": [
        ("name", 1, "string"),
        ("span_count", 2, "int32"),
        ("error_span_count", 3, "int32"),
    ],
    "TraceSummary": [
        ("trace_id", 1, "bytes"),
        ("root_service_name", 2, "string"),
        ("root_operation_name", 3, "string"),
        ("min_start_time_unix_nano", 4, "fixed64"),
        ("max_end_time_unix_nano", 5, "fixed64"),
        ("span_count", 6, "int32"),
        ("error_span_count", 7, "int32"),
        ("orphan_span_count", 8, "int32"),
        ("services", 9, "*ServiceSummary"),
    ],
    "FindTraceSummariesRequest": [("query", 1, "TraceQueryParameters")],
    "FindTraceSummariesResponse": [("summaries", 1, "*TraceSummary")],
    "GetDependenciesRequest": [("start_time", 1, TIME), ("end_time", 2, TIME)],
    "Dependency": [
        ("parent", 1, "string"),
        ("child", 2, "string"),
        ("call_count", 3, "uint64"),
        ("source", 4, "string"),
    ],
    "GetDependenciesResponse": [("dependencies", 1, "*Dependency")],
    "FilterCapabilities": [("levels", 1, "*string"), ("operators", 2, "*string")],
    "SearchCapabilities": [
        ("without_service_name", 1, "bool"),
        ("same_span_conjunction", 2, "bool"),
        ("filter", 3, "FilterCapabilities"),
    ],
    "GetCapabilitiesRequest": [],
    "GetCapabilitiesResponse": [("search", 1, "SearchCapabilities")],
}
"""Name, number and type of the fields; ``*``: repeated, ``|``: one of the values."""

_Field = descriptor_pb2.FieldDescriptorProto


def _describe() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="playhead/receiver/jaeger_storage_v2.proto", package=PACKAGE, syntax="proto3"
    )
    file.dependency.extend((timestamp_pb2.DESCRIPTOR.name, duration_pb2.DESCRIPTOR.name))
    for name, members in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if any(kind.startswith("|") for _, _, kind in members):
            message.oneof_decl.add(name="value")
        for field, number, kind in members:
            plain = kind.lstrip("*|")
            label = _Field.LABEL_REPEATED if kind.startswith("*") else _Field.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, label=label)
            if kind.startswith("|"):
                added.oneof_index = 0
            if plain in _MESSAGES or plain.startswith("."):
                added.type = _Field.TYPE_MESSAGE
                added.type_name = plain if plain.startswith(".") else f".{PACKAGE}.{plain}"
            else:
                added.type = getattr(_Field, f"TYPE_{plain.upper()}")
    # a private pool: Jaeger's own stubs may be loaded in the process
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, duration_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)  # pyright: ignore[reportUnknownMemberType]
    pool.Add(file)  # pyright: ignore[reportUnknownMemberType]
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in _MESSAGES
    }


MESSAGES: dict[str, Any] = _describe()
"""The message classes, by name."""

TracesData = trace_pb2.TracesData
