"""Large numbers of facts and spans for stores and transports."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.facts import Content, Delivery, ExchangeId, Fact
from playhead_core.otlp import set_attributes
from playhead_receiver.storage import StoredSpan
from playhead_semconv import attributes as a
from playhead_semconv import events as e

START_NS = 1_700_000_000_000_000_000


def facts_of(instance: bytes, numbers: Iterable[int], text: str = "chunk") -> list[Fact]:
    """Chunks of one endless stream. The trace id is the instance id."""
    return [
        Fact(
            START_NS + number,
            1,
            e.PLAYHEAD_EXCHANGE_DATA,
            instance,
            instance[:8],
            ExchangeId(1, "http", 0),
            Delivery(number, 0),
            {},
            Content.chunk(f"{text} {number}".encode()),
            instance,
            number,
        )
        for number in numbers
    ]


def span_of(
    trace_id: bytes,
    number: int,
    *,
    parent: int = 0,
    name: str = "chat gpt-4o",
    end_ns: int | None = None,
    service: str = "refund",
    text: str = "",
    error: bool = False,
    flags: int = 0,
    kind: int = 3,
    is_ok: bool = False,
    instance: bytes = b"",
    **attributes: Any,
) -> StoredSpan:
    """A finished span as the intake would store it. ``attributes``: ``__`` stands for a dot."""
    envelope = ResourceSpans()
    resource: dict[str, Any] = {a.SERVICE_NAME: service} if service else {}
    if instance:
        resource[a.PLAYHEAD_INSTANCE] = instance.hex()
    set_attributes(envelope.resource.attributes, resource)
    span = envelope.scope_spans.add().spans.add(
        trace_id=trace_id,
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=name,
        kind=kind,
        start_time_unix_nano=START_NS + number * 1000,
        end_time_unix_nano=START_NS + number * 1000 + 500 if end_ns is None else end_ns,
        flags=flags,
    )
    if error or is_ok:
        span.status.code = 2 if error else 1
    if text:
        attributes["text"] = text
    set_attributes(span.attributes, {key.replace("__", "."): value for key, value in attributes.items()})
    return StoredSpan(trace_id, span.span_id, envelope.SerializeToString())


def as_if_come_then(folder: Path) -> None:
    """Set the arrival time of each run in a closed store to its start time."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as db, db:
        db.execute("UPDATE run SET arrived_ns = started_ns")
