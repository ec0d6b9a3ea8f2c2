"""The protocol `Store`, which every engine implements, and access to what an engine may lack."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, Protocol, TypeVar

import msgspec

from playhead_core.errors import CorruptTape, MalformedOtlp, StoreError
from playhead_core.facts import Fact
from playhead_core.integrity import Link
from playhead_core.otlp.log_records import ALL_LOGS, LogQuery
from playhead_core.tape.protocols import Tape
from playhead_receiver.storage.values.run_summaries import Query, RunSummary
from playhead_receiver.storage.values.span_labels import SpanRow
from playhead_receiver.storage.values.stored import (
    Batch,
    Change,
    PreparedBatch,
    Receipt,
    StoredLog,
    StoredSpan,
    StoredTape,
    StoreVersion,
)

OF_ONE_RUN: Final = (
    CorruptTape,
    MalformedOtlp,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)
"""Errors that concern one run, which maintenance then skips: damage, and our bugs in reading it.

No errors of disk or database.
"""


class NotOffered(StoreError):
    """The engine of a store does not offer a protocol. The hint says what to do instead."""


class Store(Protocol):
    """Keeps everything that was acknowledged.

    There is one writer; readers may be other processes. Every method may raise `StoreUnavailable`.
    """

    def commit(self, batch: Batch | PreparedBatch) -> Receipt:
        """Store a batch. It is durable when this returns.

        Idempotent: spans are identified by (trace id, span id), facts by (instance, seq). Of facts with
        the same identity the first is kept. Of spans with the same identity the one that ended later is
        kept, at equal ends the first. `MalformedOtlp` if a span cannot be decoded: nothing is stored.
        """
        ...

    def tape(self, instance: bytes) -> StoredTape:
        """The tape of a process instance; empty if nothing of it is stored."""
        ...

    def tape_of(self, instance: bytes, trace_id: bytes) -> Tape:
        """The tape of a process instance, restricted to what the run of a trace may need.

        For a service that is what it did before its first request and for the requests of the run
        (`slices.slice_of`).
        """
        ...

    def spans(self, trace_id: bytes, only: Collection[bytes] | None = None) -> Iterator[StoredSpan]:
        """Finished spans of a trace, byte for byte as received, in order of arrival.

        ``only``: return only spans with these ids; the others are not read.
        """
        ...

    def outline(self, trace_id: bytes) -> list[SpanRow]:
        """All spans of a trace without their content, finished and pending, in no particular order.

        They are a tree: if spans name each other as parents in a ring, the first one has no parent.
        """
        ...

    def logs(self, trace_id: bytes, wanted: LogQuery = ALL_LOGS) -> Iterator[StoredLog]:
        """Log records of a trace, byte for byte as received, by time."""
        ...

    def names(self, trace_id: bytes, only: Collection[bytes] | None = None) -> dict[bytes, str]:
        """Names of finished spans of a trace, by span id, read without the rest of them.

        ``only``: of spans with these ids. A span that is damaged has none.
        """
        ...

    def stamp(self, trace_id: bytes) -> tuple[object, ...]:
        """A value that changes whenever spans, facts or log records of a trace change."""
        ...

    def ancestry(self, trace_id: bytes, span_ids: Collection[bytes]) -> list[SpanRow]:
        """These spans and all their ancestors, in the form of `outline`."""
        ...

    def resources(self) -> list[bytes]:
        """The resources of stored spans, each as OTLP `ResourceSpans` without a span."""
        ...

    def pending(self, trace_id: bytes) -> Iterator[Fact]:
        """The span-start facts of a trace whose spans have not arrived, in order of arrival."""
        ...

    def chain(self, instance: bytes) -> list[Link]:
        """The hash chain over the facts of a process instance, first link first."""
        ...

    def resource(self, instance: bytes) -> bytes | None:
        """OTLP `Resource` bytes of a process instance; None if they are not known."""
        ...

    def runs(self, query: Query) -> Iterator[RunSummary]:
        """Summaries of the runs that ``query`` selects. `UsageError` if its ``after`` is malformed."""
        ...

    def resolve(self, name: str) -> RunSummary:
        """A run by name, ``last``, ``last-1``, ``failed``, trace id, or id prefix of at least 8 digits.

        `RunUnknown`, which lists similar names; `RunAmbiguous`, which lists the candidates.
        """
        ...

    def changes(self, after: int, limit: int = 1000) -> Iterator[Change]:
        """Spans and facts committed after position ``after``, in commit order; live view and forwarding.

        At most ``limit``, fewer if they are large; none if there is nothing newer. A span that was
        replaced by one that ended later is returned at its new position only.
        """
        ...

    def position(self) -> int:
        """Position of the last change, 0 when there is none."""
        ...

    def version(self) -> StoreVersion:
        """A value that changes whenever the content changes (not when a run is summed up or marked)."""
        ...

    def lacking(self, part: type) -> NotOffered:
        """The error for a protocol that the engine does not offer, with what to do instead."""
        ...

    def close(self) -> None:
        """Release all resources. Idempotent."""
        ...


T = TypeVar("T")


def offered(store: Store, part: type[T]) -> T | None:
    """``store`` as one of the protocols, such as `Search`; None if its engine does not offer it."""
    return store if isinstance(store, part) else None


def needed(store: Store, part: type[T]) -> T:
    """``store`` as one of the protocols. `NotOffered` if its engine does not offer it."""
    if isinstance(store, part):
        return store
    raise store.lacking(part)


def words_of(part: type) -> str:
    """The name of a protocol in words: ``frame compaction``."""
    return " ".join(re.findall("[A-Z][a-z]*", part.__name__)).lower()
