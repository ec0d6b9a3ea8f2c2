"""The Store: one logical model, several engines, one conformance suite (tests/conformance)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from playhead_semconv.facts import Exchange, ExchangeId, Fact
from playhead_semconv.seams import Tape

RunStatus: TypeAlias = Literal["running", "success", "failure", "partial", "interrupted"]


class StoredSpan(msgspec.Struct, frozen=True):
    """A finished span as it came in."""

    trace_id: bytes
    span_id: bytes
    otlp: bytes
    """OTLP `ResourceSpans` that holds exactly this span, its resource and its scope."""


class Batch(msgspec.Struct):
    """What one commit stores: the content of one or several OTLP requests."""

    spans: Sequence[StoredSpan] = ()
    facts: Sequence[Fact] = ()
    resources: dict[bytes, bytes] = {}
    """Process instance → OTLP `Resource` bytes, for instances in this batch."""


class Receipt(msgspec.Struct, frozen=True):
    """What a commit did."""

    spans_new: int
    facts_new: int
    """What was there already is not counted: resending is harmless."""
    position: int
    """The commit's place in the order of changes."""


class RunSummary(msgspec.Struct, frozen=True):
    """A line of `playhead ls`: the fold of a run's facts and spans."""

    name: str
    """Given by the store, e.g. ``refund-7``: agent and number; never reused."""
    trace_id: str
    """32 hex digits."""
    root_span_id: str
    """16 hex digits."""
    agent: str
    status: RunStatus
    started_ns: int
    ended_ns: int | None
    """Last sign of life where the run was interrupted; None while it runs."""
    steps: int
    """Logical calls and tool executions, pending ones included, and HTTP requests outside of them."""
    errors: int
    input_tokens: int
    output_tokens: int
    models: list[str]
    instances: list[str]
    """Process instances of the run, 32 hex digits each, in order of their start."""
    missing: list[tuple[str, int, int]]
    """Gaps: instance, first and last missing sequence number."""
    mode: str = "record"
    origin: str = ""
    """Run id of the run that this one replays or forks."""


class Query(msgspec.Struct, frozen=True):
    """Which runs, newest first."""

    agent: str | None = None
    status: RunStatus | None = None
    mode: str | None = "record"
    """``record``: forks and resumes too, but no process that serves; another mode; or None for all."""
    limit: int = 50


class Change(msgspec.Struct, frozen=True):
    """One span or fact in commit order."""

    position: int
    item: StoredSpan | Fact


class StoredTape(Tape, Protocol):
    """A tape in a store: read piece by piece, never held whole."""

    def exchange(self, id: ExchangeId) -> Exchange | None:
        """One exchange as far as its facts are there, without a walk over the tape."""
        ...

    def last(self) -> int:
        """Highest number that is here, -1 if there is none."""
        ...

    def gaps(self) -> list[tuple[int, int]]:
        """Numbers that were given and are not here: ranges, first and last included."""
        ...


class Store(Protocol):
    """Keeps what was acknowledged.

    One writer; readers may be other processes. Every method may raise `StoreUnavailable`.
    """

    def commit(self, batch: Batch) -> Receipt:
        """Store a batch; durable when it returns; idempotent by (trace id, span id), (instance, seq).

        Of facts with one identity the first is kept. Of spans with one identity the one that ended
        later is kept, at equal ends the first. `MalformedOtlp` if a span is none: nothing is stored.
        """
        ...

    def tape(self, instance: bytes) -> StoredTape:
        """The tape of a process instance, empty if nothing is known of it."""
        ...

    def spans(self, trace_id: bytes) -> Iterator[StoredSpan]:
        """Finished spans of a trace, byte for byte as received, in order of arrival."""
        ...

    def pending(self, trace_id: bytes) -> Iterator[Fact]:
        """The span-start facts of a trace whose spans have not come, in order of arrival."""
        ...

    def resource(self, instance: bytes) -> bytes | None:
        """OTLP `Resource` bytes of a process instance."""
        ...

    def runs(self, query: Query) -> Iterator[RunSummary]:
        """Summaries of runs, newest first."""
        ...

    def resolve(self, name: str) -> RunSummary:
        """A run by name, ``last``, ``last-1``, ``failed``, trace id, or id prefix of at least 8 digits.

        `RunUnknown` (naming what is near), `RunAmbiguous` (naming the candidates).
        """
        ...

    def changes(self, after: int, limit: int = 1000) -> Iterator[Change]:
        """Spans and facts committed after position ``after``, in commit order; live view and forward.

        At most ``limit``, and fewer where they are large; none when there is nothing newer. A span
        that was replaced by one that ended later comes again, at its new position only.
        """
        ...

    def position(self) -> int:
        """Position of the last change, 0 when there is none."""
        ...

    def close(self) -> None:
        """Let go of everything. Idempotent."""
        ...
