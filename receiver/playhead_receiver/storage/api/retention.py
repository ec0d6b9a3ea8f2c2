"""Retention: marks, deletion, sizes, and how long the history of services is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from playhead_core.integrity.tombstones import Why
from playhead_receiver.storage.api.maintenance import Statistics
from playhead_receiver.storage.api.store import Store

HELD = "held"
"""Mark of a run that is never deleted."""
FLAGGED = "flagged"
"""Mark of a run that is to be kept for longer."""
TEST = "test"
"""Mark of a test run, which is kept for a short time only."""
IMPORTED = "imported"
"""Mark of a run from a file that was not written here: its program is run only after confirmation."""
MARKS = (HELD, FLAGGED, TEST, IMPORTED)


class Deleted(msgspec.Struct, frozen=True):
    """Counts of what a deletion removed."""

    runs: int = 0
    spans: int = 0
    facts: int = 0
    blobs: int = 0
    checkpoints: int = 0
    wiped: bool = True
    """True if nothing of it is left in the files and logs of all databases.

    False while a reader of one of them needs an older state, until a large search index is rewritten,
    and while overwriting takes longer than a deletion waits: `LogEmptying.empty_logs`.
    """


@runtime_checkable
class Retention(Statistics, Protocol):
    """A store whose runs can be marked and deleted."""

    def mark(self, trace_id: bytes, word: str, on: bool = True) -> None:
        """Put one of `MARKS` on a run, or remove it."""
        ...

    def marks(self) -> dict[bytes, set[str]]:
        """The marks of all runs that have any, by trace id."""
        ...

    def delete(self, trace_ids: Sequence[bytes], by: str = "", why: Why = Why.DELETED) -> Deleted:
        """Delete runs and everything that only they use: spans, facts, texts, blobs, names of resources,
        checkpoints.

        ``by``: who deletes; the tombstone names them.

        A tape that other runs share stays, with the same numbers, but without the content of the
        deleted runs. Deleted bytes are overwritten, not only unlinked. Names are never reused.
        """
        ...

    def checkpoint_bytes(self) -> int:
        """Bytes that the checkpoints take besides `used_bytes`; deleted ones do not count. May read all
        rows."""
        ...

    def delete_strays(self, before_ns: int, most: int) -> int:
        """Delete the oldest checkpoints that belong to no run with stored spans.

        At most ``most``, and only those from before a time. A checkpoint that others build on stays.
        Returns how many were deleted.
        """
        ...

    def sweep(self) -> Deleted:
        """Delete what nothing refers to, such as blobs of a commit that did not finish.

        Of runs that were deleted, also checkpoints that came later, or that stayed because the process
        died before it had deleted them.
        """
        ...


class History(msgspec.Struct, frozen=True):
    """How much history of a service is kept for each process: what it did outside of requests."""

    time_s: float = 3600.0
    """How long it is kept, counted back from the last fact of the process."""
    size_bytes: int = 64 << 20
    """How much of it is kept, in bytes as stored."""


@runtime_checkable
class Ageing(Store, Protocol):
    """A store that deletes old history of services: what they did outside of requests."""

    def age_out(self, kept: History) -> int:
        """Let some of what services did outside of requests age out; 0 if nothing is left to do for now.

        What ages out is declared (`StoredTape.aged`). What happened before the first request stays, and
        so do facts that others need: bodies that others extend, names of lanes, starts of spans that
        have not arrived.
        """
        ...
