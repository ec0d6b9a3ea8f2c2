"""The log records of a run: read from a store or a tape file when they are needed.

Some of them are events with messages of a model call. These messages become attributes of the call's
span, unless the span has them itself; what is stored does not change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from playhead_core.otlp.log_records import LogLine, LogQuery, log_line
from playhead_genai.content_events import CONTENT_EVENTS, ContentEvent, attributes_of_events

Read: TypeAlias = Callable[[LogQuery], Iterable[bytes]]
"""Reads log records, each as OTLP `ResourceLogs` bytes, by time."""


class EventLike(Protocol):
    """An event of a span."""

    @property
    def name(self) -> str:
        """Name of the event."""
        ...

    @property
    def time_ns(self) -> int:
        """Nanoseconds since the epoch."""
        ...

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes by name."""
        ...


class RunLogs:
    """The log records of a run."""

    def __init__(self, read: Read) -> None:
        self._read = read

    @classmethod
    def of_file(cls, records: Sequence[bytes]) -> RunLogs:
        """The log records of a tape file."""
        return cls(lambda wanted: (one for one in records if _is_wanted(log_line(one), wanted)))

    def lines(self, span_ids: Collection[str] | None = None, level: int = 0) -> Iterator[LogLine]:
        """The records by time; of spans with these ids, and of at least this severity number."""
        ids = None if span_ids is None else [bytes.fromhex(one) for one in span_ids]
        return map(log_line, self._read(LogQuery(ids, level)))

    def content(self) -> dict[str, list[ContentEvent]]:
        """The events with messages of model calls, by span id."""
        found: defaultdict[str, list[ContentEvent]] = defaultdict(list)
        for one in map(log_line, self._read(LogQuery(content=True))):
            found[one.span_id].append(content_event(one))
        return found


NO_LOGS = RunLogs(lambda _: ())


def content_event(line: LogLine) -> ContentEvent:
    """Return a log record as an event with messages."""
    return ContentEvent(line.event, line.time_ns, line.attributes, line.body)


def content_of(
    events: Iterable[EventLike], logged: Iterable[ContentEvent], present: Collection[str]
) -> dict[str, Any]:
    """Return the messages of a call that its span lacks, from the span's events and from log records.

    ``present``: names of the attributes that the span has.
    """
    own = (
        ContentEvent(one.name, one.time_ns, one.attributes)
        for one in events
        if one.name in CONTENT_EVENTS
    )
    found = attributes_of_events([*own, *logged])
    return {name: value for name, value in found.items() if name not in present}


def _is_wanted(line: LogLine, wanted: LogQuery) -> bool:
    if line.level < wanted.level or (wanted.content and line.event not in CONTENT_EVENTS):
        return False
    return wanted.span_ids is None or bytes.fromhex(line.span_id) in wanted.span_ids
