"""The Upkeep protocol: a Store that can also be verified, cleaned up, searched and copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec

from playhead_receiver.store.protocol.store import Store
from playhead_receiver.store.runs.attribute_keys import Need
from playhead_receiver.store.values.span_labels import Meaning
from playhead_semconv.custody.tombstones import Tombstone, Why

HELD = "held"
"""Mark of a run that is never deleted."""
FLAGGED = "flagged"
"""Mark of a run that is to be kept for longer."""
TEST = "test"
"""Mark of a test run, which is kept for a short time only."""
IMPORTED = "imported"
"""Mark of a run from a file that was not written here: its program is run only after a question."""
MARKS = (HELD, FLAGGED, TEST, IMPORTED)


class Finding(msgspec.Struct, frozen=True):
    """A defect that `Upkeep.verify` found."""

    what: str
    """``database``, ``span``, ``text``, ``link``, ``facts``, ``chain``, ``blob``, ``run`` or
    ``tombstone``."""
    where: str
    problem: str
    runs: list[str] = []
    """Trace ids of the affected runs, as far as they are known."""


class Deleted(msgspec.Struct, frozen=True):
    """Counts of what a deletion removed."""

    runs: int = 0
    spans: int = 0
    facts: int = 0
    blobs: int = 0
    wiped: bool = True
    """True if nothing of it is left in file and log; False while a reader holds an older snapshot."""


AskedFor: TypeAlias = Callable[[bytes], bool]
"""Whether the trace with an id is to be searched."""
LOOKED_AT = 10_000
"""Most matching texts that one search examines: the newest ones."""


class Hit(msgspec.Struct, frozen=True):
    """One result of a search."""

    trace_id: str
    span_id: str
    """The first span that contains the match, as far as it is kept."""
    time_ns: int
    excerpt: str
    """The text around the first matching word."""
    is_request: bool = False
    """Whether it is in the body of a request."""
    effect: str = ""
    """Kind of the effect that it is in (``stdout``, …); empty if it is in none."""


class Lag(msgspec.Struct, frozen=True):
    """What is stored and not searchable yet."""

    bundles: int
    """Groups of spans."""
    fact_runs: int
    """Groups of facts."""


class History(msgspec.Struct, frozen=True):
    """How much is kept of what a service did outside of requests, for each process."""

    time_s: float = 3600.0
    """How long it is kept, counted back from the last fact of the process."""
    size_bytes: int = 64 << 20
    """How much of it is kept, in bytes as stored."""


class Upkeep(Store, Protocol):
    """A store with maintenance operations. Readers and commits continue meanwhile."""

    def verify(self) -> Iterator[Finding]:
        """Read everything, compare it with its digests and with what refers to it; yield all defects."""
        ...

    def not_chained(self) -> int:
        """How many processes have facts that were stored before chains existed."""
        ...

    def tombstones(self) -> Iterator[Tombstone]:
        """The tombstones of deleted runs, oldest first."""
        ...

    def delete(self, trace_ids: Sequence[bytes], by: str = "", why: Why = Why.DELETED) -> Deleted:
        """Delete runs and everything that only they use: spans, facts, texts, blobs, names of resources.

        ``by``: who deletes; the tombstone names them.

        A tape that other runs share stays, with the same numbers, but without the content of the
        deleted runs. Deleted bytes are overwritten, not only unlinked. Names are never reused.
        """
        ...

    def sweep(self) -> Deleted:
        """Delete what nothing refers to, such as blobs of a commit that did not finish."""
        ...

    def mark(self, trace_id: bytes, word: str, on: bool = True) -> None:
        """Put one of `MARKS` on a run, or remove it."""
        ...

    def marks(self) -> dict[bytes, set[str]]:
        """The marks of all runs that have any, by trace id."""
        ...

    def to_look_at(self, limit: int = 10_000) -> tuple[dict[bytes, list[bytes]], int]:
        """Span ids of the requests whose meaning the receiver has not determined yet, by trace id.

        Also the position up to which the list is complete, for `looked_at`; 0 if nothing is new.
        Requests that an older version stored are skipped.
        """
        ...

    def looked_at(self, position: int) -> None:
        """Note that all spans up to a position were examined."""
        ...

    def mean(self, trace_id: bytes, found: Mapping[bytes, Meaning]) -> int:
        """Store the meanings of spans of a trace, by span id; return how many of the spans exist.

        The bytes of the spans do not change; `StoredSpan.wire`, `outline` and summaries show the
        meanings.
        """
        ...

    def sum_up(self, limit: int = 64) -> int:
        """Update at most ``limit`` outdated summaries of runs; return how many were updated.

        Lists are correct without this, but slower the more summaries are outdated.
        """
        ...

    def roll(self, kept: History) -> int:
        """Let some of what services did outside of requests age out; 0 if nothing is left to do for now.

        What ages out is declared (`StoredTape.aged`). What happened before the first request stays, and
        so do facts that others need: bodies that others extend, names of lanes, starts of spans that
        have not arrived.
        """
        ...

    def set_aside(self) -> int:
        """How many runs `sum_up` skips because something in them cannot be summed up."""
        ...

    def compact(self, quiet_s: float = 60.0) -> int:
        """Join frames of runs that received nothing for ``quiet_s``; return the number of new blocks.

        The stored content is the same afterwards, in fewer bytes.
        """
        ...

    def housekeeping(self) -> AbstractContextManager[bool]:
        """Try to become the only receiver that maintains this store, for the ``with`` block.

        The block gets False if another receiver does it already.
        """
        ...

    def index(self) -> int:
        """Make some more of the store searchable; 0 if all of it is."""
        ...

    def unindex(self) -> None:
        """Delete the search index. `index` builds it again; searches find nothing until then."""
        ...

    def lag(self) -> Lag:
        """How far the search index is behind the store."""
        ...

    def search(self, text: str, limit: int = 20, asked_for: AskedFor | None = None) -> list[Hit]:
        """Where all words occur together, newest first. `UsageError` if ``text`` has no word.

        ``"…"`` is a phrase; a ``*`` after a word matches any ending. Repeated content is found where it
        occurred first; with ``asked_for``, in every trace for which that is true instead.
        """
        ...

    def having(self, needs: Sequence[Need]) -> set[bytes] | None:
        """Ids of the traces that may have, for each need, one of its `attribute_keys`.

        A superset: not all of them do. Traces that are not indexed yet or have not ended are included.
        None: there is no index, so any trace may.
        """
        ...

    def size_bytes(self) -> int:
        """Bytes on disk, cheaply determined: space that a deletion left free may count."""
        ...

    def used_bytes(self) -> int:
        """Bytes that the stored content takes; deleted content does not count. May read all rows."""
        ...

    def backup(self, folder: Path) -> int:
        """Copy one snapshot of the store into a new or empty folder; `StoreError` if it is neither.

        Returns how many large bodies are missing in the copy, because they are missing or damaged here.
        """
        ...
