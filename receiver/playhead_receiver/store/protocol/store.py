"""The Store: one logical model, several engines, one conformance suite (tests/conformance)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from playhead_semconv.custody import Link
from playhead_semconv.facts import Exchange, ExchangeId, Fact
from playhead_semconv.tape.protocols import Tape

if TYPE_CHECKING:
    from playhead_receiver.store.runs.summary_fold import SpanRow
    from playhead_receiver.store.spans.span_view import Label, Usage
    from playhead_receiver.store.writing.prepare import Prepared

RunStatus: TypeAlias = Literal["running", "success", "failure", "partial", "interrupted"]


class StoredSpan(msgspec.Struct, frozen=True):
    """A finished span as it came in."""

    trace_id: bytes
    span_id: bytes
    otlp: bytes
    """OTLP `ResourceSpans` that holds exactly this span, its resource and its scope."""
    wire: str = ""
    """What the store has found out about it since, see `Label`."""

    @property
    def size_bytes(self) -> int:
        """Of all of it."""
        return len(self.otlp)


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a span's bytes lie; what stands around them in its `ResourceSpans`, without the resource."""

    source: bytes
    begin: int
    end: int
    front: bytes
    back: bytes

    @property
    def whole(self) -> bytes:
        """All of it."""
        return b"".join((self.front, self.source[self.begin : self.end], self.back))

    @property
    def size_bytes(self) -> int:
        """Of all of it."""
        return len(self.front) + self.end - self.begin + len(self.back)


class ReadSpan(msgspec.Struct, frozen=True):
    """A span that was looked at. ``resource_field`` and ``place`` are `StoredSpan.otlp` in two."""

    view: Any
    """Its `SpanView`, checked."""
    resource: bytes
    """The OTLP resource."""
    resource_field: bytes
    place: Place

    @property
    def size_bytes(self) -> int:
        """Of all of it."""
        return len(self.resource_field) + self.place.size_bytes


class Batch(msgspec.Struct):
    """What one commit stores: the content of one or several OTLP requests."""

    spans: Sequence[StoredSpan | ReadSpan] = ()
    facts: Sequence[Fact] = ()
    resources: dict[bytes, bytes] = {}
    """Process instance → OTLP `Resource` bytes, for instances in this batch."""
    links: Sequence[Link] = ()
    """Of chains that were made elsewhere: taken for processes of which no fact is here yet."""


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
    spans: int = 0
    """Spans that have come, and those that have started."""
    last_ns: int = 0
    """Last sign of life so far; ``ended_ns`` where the run is over."""
    cached_tokens: int = 0
    """Input tokens that came out of a provider's cache; part of ``input_tokens``."""
    cache_write_tokens: int = 0
    """Input tokens that went into it; part of ``input_tokens``."""
    reasoning_tokens: int = 0
    """Part of ``output_tokens``."""
    cost_usd: float | None = None
    """At the prices of the day; None where no price of what was used is known."""
    unpriced: list[str] = []
    """Models that used tokens and have no known price: the cost is without them."""
    providers: list[str] = []
    tools: list[str] = []
    """Names of the tools that were executed, as all lists here in order of their first use."""
    error_types: list[str] = []
    """``error.type`` of what failed; ``_OTHER`` where it did not say."""
    version: str = ""
    """Of the agent, else of its service."""
    environment: str = ""
    """``deployment.environment.name``."""
    conversation: str = ""
    """``gen_ai.conversation.id``."""
    arrived_ns: int = 0
    """When something of it last came into the store."""
    marks: list[str] = []
    """What a person has said of it: ``held``, ``flagged``, ``test``."""
    is_process: bool = False
    """Whether it is what a recorded process did; else a request, or spans alone."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it to look at or to replay: a request or a span without a step."""
        return not self.steps and not self.is_process


Sort: TypeAlias = Literal["started", "duration", "cost", "tokens", "steps", "errors"]


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs, in which order. What is None does not matter."""

    agent: str | None = None
    status: RunStatus | None = None
    mode: str | None = "record"
    """``record``: forks and resumes too, but no process that serves; another mode; or None for all."""
    limit: int = 50
    version: str | None = None
    environment: str | None = None
    conversation: str | None = None
    model: str | None = None
    """One of its models; so with the next three."""
    provider: str | None = None
    tool: str | None = None
    error_type: str | None = None
    has_errors: bool | None = None
    """Whether a step of it failed, whatever became of the run."""
    started_from_ns: int | None = None
    started_before_ns: int | None = None
    duration_from_ns: int | None = None
    duration_below_ns: int | None = None
    cost_from_usd: float | None = None
    """A run of unknown cost is neither above nor below anything."""
    cost_below_usd: float | None = None
    sort: Sort = "started"
    ascending: bool = False
    """Least first; else greatest, which is newest, first. Equals come in order of their trace ids."""
    origin: str = ""
    """Replays, forks and resumes of the run of this trace id, 32 hex digits."""
    after: str = ""
    """Only what comes behind this place; `place_of` says that of the last run of a page."""
    traces: frozenset[bytes] | None = None
    """Only runs with these trace ids."""
    mark: str | None = None
    """Only runs on which somebody has put it."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a stored span means, as its bytes tell."""

    label: Label
    usage: Usage


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

    def aged(self) -> list[tuple[int, int]]:
        """Numbers that were here and have aged out (`Upkeep.roll`): ranges; they are no gaps."""
        ...


class Store(Protocol):
    """Keeps what was acknowledged.

    One writer; readers may be other processes. Every method may raise `StoreUnavailable`.
    """

    def commit(self, batch: Batch | Prepared) -> Receipt:
        """Store a batch; durable when it returns; idempotent by (trace id, span id), (instance, seq).

        Of facts with one identity the first is kept. Of spans with one identity the one that ended
        later is kept, at equal ends the first. `MalformedOtlp` if a span is none: nothing is stored.
        """
        ...

    def tape(self, instance: bytes) -> StoredTape:
        """The tape of a process instance, empty if nothing is known of it."""
        ...

    def tape_of(self, instance: bytes, trace_id: bytes) -> Tape:
        """That tape, as far as the run of a trace may need it: of a process that serves, what it did

        before the first request came, and for the requests of the run (`slices.slice_of`).
        """
        ...

    def spans(self, trace_id: bytes, only: Collection[bytes] | None = None) -> Iterator[StoredSpan]:
        """Finished spans of a trace, byte for byte as received, in order of arrival.

        ``only``: those with these span ids, without a look at the others.
        """
        ...

    def outline(self, trace_id: bytes) -> list[SpanRow]:
        """All spans of a trace without their content, finished and pending, in no order."""
        ...

    def lineage(self, trace_id: bytes, span_ids: Collection[bytes]) -> list[SpanRow]:
        """These spans, as `outline` gives them, and all that enclose them."""
        ...

    def resources(self) -> list[bytes]:
        """The resources that stored spans have, each as OTLP `ResourceSpans` without a span."""
        ...

    def pending(self, trace_id: bytes) -> Iterator[Fact]:
        """The span-start facts of a trace whose spans have not come, in order of arrival."""
        ...

    def chain(self, instance: bytes) -> list[Link]:
        """The chain over the facts of a process instance, its first link first."""
        ...

    def resource(self, instance: bytes) -> bytes | None:
        """OTLP `Resource` bytes of a process instance."""
        ...

    def runs(self, query: Query) -> Iterator[RunSummary]:
        """Summaries of the runs that ``query`` asks for. `UsageError` if its ``after`` is no place."""
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
