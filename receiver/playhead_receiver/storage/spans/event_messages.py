"""Messages of calls that their instrumentation sent as events: log records, or events of the span."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.otlp import attributes_of, set_attributes
from playhead_core.otlp.log_records import LogQuery, log_line
from playhead_replay.logs import content_event, content_of
from playhead_replay.run.spans import SpanEvent

if TYPE_CHECKING:
    from playhead_receiver.storage.values.stored import StoredLog


class LogStore(Protocol):
    """Where log records are found; `Store` is one."""

    def logs(self, trace_id: bytes, wanted: LogQuery) -> Iterator[StoredLog]:
        """Log records of a trace."""
        ...


def add_messages(store: LogStore, envelope: ResourceSpans) -> ResourceSpans:
    """Add the messages that a span lacks and events have; ``envelope`` holds only this span."""
    span = envelope.scope_spans[0].spans[0]
    wanted = LogQuery([span.span_id], content=True)
    lines = [log_line(one.otlp) for one in store.logs(span.trace_id, wanted)]
    if span.events or lines:
        events = [
            SpanEvent(event.name, event.time_unix_nano, attributes_of(event.attributes))
            for event in span.events
        ]
        present = {pair.key for pair in span.attributes}
        set_attributes(span.attributes, content_of(events, map(content_event, lines), present))
    return envelope
