"""Values that are committed and read back: spans as received, facts, tapes, changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from playhead_core.facts import Exchange, ExchangeId, Fact
from playhead_core.integrity import Link
from playhead_core.tape.protocols import Tape


class StoredSpan(msgspec.Struct, frozen=True):
    """A finished span as it was received."""

    trace_id: bytes
    span_id: bytes
    otlp: bytes
    """OTLP `ResourceSpans` that holds exactly this span, its resource and its scope."""
    wire: str = ""
    """The wire that was recognised in it since; see `Label.wire`."""

    @property
    def size_bytes(self) -> int:
        """Size of ``otlp``."""
        return len(self.otlp)


class SpanLocation(msgspec.Struct, frozen=True, gc=False):
    """Where a span's bytes are, and the bytes around them in its `ResourceSpans` (no resource)."""

    source: bytes
    begin: int
    end: int
    front: bytes
    back: bytes

    @property
    def whole(self) -> bytes:
        """The span with the bytes around it."""
        return b"".join((self.front, self.source[self.begin : self.end], self.back))

    @property
    def size_bytes(self) -> int:
        """Size of `whole`."""
        return len(self.front) + self.end - self.begin + len(self.back)


class ReadSpan(msgspec.Struct, frozen=True):
    """A parsed span. ``resource_field`` and ``place`` together are the bytes of `StoredSpan.otlp`."""

    view: Any
    """Its `SpanView`, checked."""
    resource: bytes
    """The OTLP resource."""
    resource_field: bytes
    place: SpanLocation

    @property
    def size_bytes(self) -> int:
        """Size of the span with its resource."""
        return len(self.resource_field) + self.place.size_bytes


class StoredLog(msgspec.Struct, frozen=True):
    """A log record as it was received."""

    trace_id: bytes
    span_id: bytes
    """Empty if it belongs to no span."""
    time_ns: int
    level: int
    """Severity number of OTLP, 0 if unknown."""
    digest: bytes
    """Of its bytes; with trace and time the identity of the record."""
    otlp: bytes
    """OTLP `ResourceLogs` that holds exactly this record, its resource and its scope."""

    @property
    def key(self) -> str:
        """Its position in the records of its trace, for `Store.logs`."""
        return f"{self.time_ns}:{self.digest.hex()}"


class ReadLog(msgspec.Struct, frozen=True):
    """A parsed log record. ``resource_field`` and ``place`` together are its `StoredLog.otlp`."""

    trace_id: bytes
    span_id: bytes
    time_ns: int
    level: int
    is_content: bool
    """Whether it is an event that is read with the run: messages of a call, a score, a report."""
    resource: bytes
    resource_field: bytes
    place: SpanLocation
    words: tuple[tuple[str, str], ...] = ()
    """Words by which it finds its run, each with its field."""

    @property
    def size_bytes(self) -> int:
        """Size of the record with its resource."""
        return len(self.resource_field) + self.place.size_bytes


class Batch(msgspec.Struct):
    """The input of one commit: the content of one or several OTLP requests."""

    spans: Sequence[StoredSpan | ReadSpan] = ()
    facts: Sequence[Fact] = ()
    resources: dict[bytes, bytes] = {}
    """Process instance → OTLP `Resource` bytes, for instances in this batch."""
    links: Sequence[Link] = ()
    """Links of chains made elsewhere. Taken only for processes of which no fact is stored yet."""
    logs: Sequence[ReadLog] = ()


class PreparedBatch(msgspec.Struct):
    """A batch in the form that engines write; `writing.prepare` makes it."""


class Receipt(msgspec.Struct, frozen=True):
    """The result of a commit."""

    spans_new: int
    facts_new: int
    """Items that were stored already are not counted: resending is harmless."""
    position: int
    """The commit's place in the order of changes."""
    logs_new: int = 0


class Change(msgspec.Struct, frozen=True):
    """One span or fact in commit order."""

    position: int
    item: StoredSpan | Fact


class StoreVersion(msgspec.Struct, frozen=True):
    """The state of a store. Stores with equal versions have the same content."""

    position: int
    """Position of the last span or fact."""
    bundle: int
    """Number of the last group of spans and log records. It also increases when spans are derived again
    and when facts age out."""
    deletion: int
    """Number of the last deletion of runs."""


class StoredTape(Tape, Protocol):
    """A tape in a store: read piece by piece, never held whole."""

    def exchange(self, id: ExchangeId) -> Exchange | None:
        """One exchange as far as its facts are stored, without a scan of the tape."""
        ...

    def last(self) -> int:
        """Highest stored sequence number, -1 if there is none."""
        ...

    def gaps(self) -> list[tuple[int, int]]:
        """Sequence numbers that were assigned and are missing: ranges, first and last included."""
        ...

    def aged(self) -> list[tuple[int, int]]:
        """Sequence numbers that have aged out (`Ageing.age_out`): ranges. They do not count as gaps."""
        ...
