"""The part of a store that a run is read from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from playhead_core.otlp.log_records import LogQuery
from playhead_core.tape.protocols import Tape


class SummaryLike(Protocol):
    """The summary of a run in a store."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def trace_id(self) -> str: ...  # noqa: D102
    @property
    def agent(self) -> str: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def started_ns(self) -> int: ...  # noqa: D102
    @property
    def ended_ns(self) -> int | None: ...  # noqa: D102
    @property
    def instances(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def mode(self) -> str: ...  # noqa: D102
    @property
    def origin(self) -> str: ...  # noqa: D102
    @property
    def cost_usd(self) -> float | None: ...  # noqa: D102
    @property
    def unpriced(self) -> Sequence[str]: ...  # noqa: D102


class StoredSpanLike(Protocol):
    """A stored span or log record."""

    @property
    def otlp(self) -> bytes:
        """OTLP `ResourceSpans` or `ResourceLogs` bytes of this span or record alone."""
        ...


class StoreLike(Protocol):
    """The part of a store that a run is read from; the receiver's `Store` implements it."""

    def resolve(self, name: str) -> SummaryLike:
        """A run by name or trace id. `RunUnknown` if there is none."""
        ...

    def spans(self, trace_id: bytes) -> Iterator[StoredSpanLike]:
        """Finished spans of a trace."""
        ...

    def logs(self, trace_id: bytes, wanted: LogQuery) -> Iterator[StoredSpanLike]:
        """Log records of a trace by time, each as OTLP `ResourceLogs` bytes."""
        ...

    def tape_of(self, instance: bytes, trace_id: bytes) -> Tape:
        """The tape of a process instance, as far as the run of a trace may need it."""
        ...
