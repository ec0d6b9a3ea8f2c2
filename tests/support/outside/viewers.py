"""Clients that act as trace viewers: Jaeger's query service, Grafana's Tempo data source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import grpc
import httpx
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData

from playhead_receiver.api.jaeger.messages import MESSAGES

STREAMS = ("GetTraces", "FindTraces", "FindTraceSummaries")
"""Methods of `jaeger.storage.v2` that answer with a stream."""
PROTOBUF = {"accept": "application/protobuf"}
TRACE_KEYS = {
    "traceID",
    "rootServiceName",
    "rootTraceName",
    "startTimeUnixNano",
    "durationMs",
    "spanSet",
    "spanSets",
    "serviceStats",
}
"""Keys allowed in a trace found by Tempo; Grafana rejects unknown ones."""
SPAN_KEYS = {"spanID", "name", "startTimeUnixNano", "durationNanos", "attributes"}


class Ask(Protocol):
    """Call a method of `jaeger.storage.v2`; returns a list if it streams."""

    def __call__(self, name: str, of: str = "TraceReader", **fields: Any) -> Any: ...


@contextmanager
def jaeger(endpoint: str) -> Iterator[Ask]:
    """A Jaeger whose remote storage listens on ``endpoint``."""
    with grpc.insecure_channel(endpoint) as channel:

        def ask(name: str, of: str = "TraceReader", **fields: Any) -> Any:
            answer = TracesData if name in ("GetTraces", "FindTraces") else MESSAGES[f"{name}Response"]
            make = channel.unary_stream if name in STREAMS else channel.unary_unary
            method = make(
                f"/jaeger.storage.v2.{of}/{name}",
                request_serializer=MESSAGES[f"{name}Request"].SerializeToString,
                response_deserializer=answer.FromString,
            )
            found = method(MESSAGES[f"{name}Request"](**fields), timeout=60)
            return list(found) if name in STREAMS else found

        yield ask


def jaeger_query(**fields: Any) -> Any:
    """``TraceQueryParameters``."""
    return MESSAGES["TraceQueryParameters"](**fields)


def spans_of(*chunks: TracesData) -> list[Span]:
    """All spans in some messages."""
    return [
        span
        for chunk in chunks
        for envelope in chunk.resource_spans
        for scoped in envelope.scope_spans
        for span in scoped.spans
    ]


def searched(api: httpx.Client, q: str, **more: Any) -> list[Any]:
    """The traces that Tempo's search finds."""
    answer = api.get("/tempo/api/search", params={"q": q, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["traces"]


def series_of(answer: httpx.Response) -> dict[tuple[Any, ...], list[tuple[int, float]]]:
    """TraceQL metrics: time in ms and value of each point, by labels as ``(name, value, …)``."""
    assert answer.status_code == 200, answer.text
    return {
        tuple(part for label in one["labels"] for part in (label["key"], *label["value"].values())): [
            (int(sample["timestampMs"]), sample["value"]) for sample in one["samples"]
        ]
        for one in answer.json()["series"]
    }
