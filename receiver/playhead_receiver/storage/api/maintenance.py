"""Maintenance: statistics, summaries, derived attributes, compaction, verification, checkpoints, backup.

Readers and commits continue meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from playhead_core.integrity.tombstones import Tombstone
from playhead_receiver.storage.api.store import Store
from playhead_receiver.storage.values.span_labels import DerivedCall

if TYPE_CHECKING:
    from playhead_checkpoint.claims.leased import LeasedClaims
    from playhead_checkpoint.store.sql import SqlCheckpoints


class Finding(msgspec.Struct, frozen=True):
    """A defect that `Verification.verify` found."""

    what: str
    """``database``, ``span``, ``log``, ``text``, ``link``, ``facts``, ``chain``, ``blob``, ``run``,
    ``tombstone``, ``checkpoint``, ``note`` or ``node``: of checkpoints."""
    where: str
    problem: str
    runs: list[str] = []
    """Trace ids of the affected runs, as far as they are known."""


@runtime_checkable
class Verification(Store, Protocol):
    """A store that can be compared with its digests and chains."""

    def verify(self) -> Iterator[Finding]:
        """Read everything, compare it with its digests and with what refers to it; yield all defects."""
        ...

    def not_chained(self) -> int:
        """How many processes have facts that were stored before chains existed."""
        ...

    def tombstones(self) -> Iterator[Tombstone]:
        """The tombstones of deleted runs, oldest first."""
        ...


@runtime_checkable
class Statistics(Store, Protocol):
    """A store that knows how large it is."""

    def size_bytes(self) -> int:
        """Bytes on disk, cheaply determined: space that a deletion left free may count."""
        ...

    def used_bytes(self) -> int:
        """Bytes that the stored content takes; deleted content does not count. May read all rows."""
        ...


@runtime_checkable
class Summaries(Store, Protocol):
    """A store that keeps summaries of its runs, for lists."""

    def sum_up(self, limit: int = 64, *, final: bool = False) -> int:
        """Update at most ``limit`` outdated summaries of runs; return how many were updated.

        When none is outdated, also those that an earlier version of playhead stored. Summaries of large
        runs that still grow are updated at intervals. ``final``: all outdated ones, and no earlier ones.
        Lists are correct without this, but slower the more summaries are outdated.
        """
        ...

    def skipped_runs(self) -> int:
        """How many runs `sum_up` skips because something in them cannot be summed up."""
        ...


@runtime_checkable
class DerivedFindings(Store, Protocol):
    """A store that keeps words of what was derived from runs: failures, loops, whether they are stuck.

    They can be thrown away and derived again.
    """

    def changed_runs(self, after: int) -> tuple[set[bytes], int]:
        """Trace ids of the runs that got spans or facts after a position, and the position reached."""
        ...

    def changed_tapes(self, after: int, up_to: int) -> set[bytes]:
        """Process instances that left facts after a position and up to another one."""
        ...

    def underived(self, version: int, limit: int = 100) -> list[bytes]:
        """Trace ids of runs with no findings of this version, or that changed later; newest first."""
        ...

    def store_findings(self, trace_id: bytes, words: Mapping[str, Collection[str]]) -> None:
        """Replace the words of some kinds: ``failure``, ``loop``, ``stuck``, ``derived``."""
        ...


@runtime_checkable
class CallDerivation(Store, Protocol):
    """A store that keeps attributes derived from requests without a GenAI instrumentation."""

    def unexamined_spans(
        self, limit: int = 10_000
    ) -> tuple[dict[bytes, list[bytes]], dict[bytes, list[bytes]], int]:
        """Span ids of the requests that the receiver has not examined yet, by trace id.

        Then those of calls to models that have GenAI attributes of their own, and of other spans that
        used tokens, since the same time. Last the position up to which both are complete, for
        `mark_examined`; 0 if nothing is new.
        Requests that an older version stored are skipped.
        """
        ...

    def awaited_spans(self) -> dict[bytes, list[bytes]]:
        """Span ids of the latest requests whose bytes had not arrived when examined, by trace id."""
        ...

    def changed_tapes(self, after: int, up_to: int) -> set[bytes]:
        """Process instances that left facts after a position and up to another one."""
        ...

    def mark_examined(self, position: int) -> None:
        """Note that all spans up to a position were examined."""
        ...

    def store_derived(self, trace_id: bytes, found: Mapping[bytes, DerivedCall]) -> int:
        """Store derived attributes of spans of a trace, by span id; return how many of the spans exist.

        The bytes of the spans do not change; `StoredSpan.wire`, `outline` and summaries show what
        was derived.
        """
        ...


@runtime_checkable
class FrameCompaction(Store, Protocol):
    """A store whose frames of spans can be joined."""

    def compact(self, quiet_s: float = 60.0) -> int:
        """Join frames of runs that received nothing for ``quiet_s``; return the number of new blocks.

        The stored content is the same afterwards, in fewer bytes.
        """
        ...


@runtime_checkable
class LogEmptying(Store, Protocol):
    """A store with write-ahead logs, which may hold deleted content while others read."""

    def empty_logs(self) -> bool:
        """Empty the logs that may hold deleted content; return whether none does any more.

        It does nothing if nothing was deleted, and does not wait for readers.
        """
        ...


@runtime_checkable
class SharedMaintenance(Store, Protocol):
    """A store that several receivers write to, one of which keeps it in order."""

    def exclusive_maintenance(self) -> AbstractContextManager[bool]:
        """Try to become the only receiver that maintains this store, for the ``with`` block.

        The block gets False if another receiver does it already.
        """
        ...


@runtime_checkable
class Backup(Store, Protocol):
    """A store that copies itself."""

    def backup(self, folder: Path) -> int:
        """Copy one snapshot of the store into a new or empty folder; `StoreError` if it is neither.

        Returns how many large bodies are missing in the copy, because they are missing or damaged here.
        """
        ...


@runtime_checkable
class StoredCheckpoints(Store, Protocol):
    """A store that keeps checkpoints. They are verified, copied and deleted with its runs."""

    def checkpoints(self) -> SqlCheckpoints:
        """The checkpoints. They are opened, and made if they are missing, at the first call."""
        ...

    def claims(self) -> LeasedClaims:
        """The claims of effects that agents on other machines make; stored next to the checkpoints."""
        ...

    def existing_checkpoints(self) -> SqlCheckpoints | None:
        """The checkpoints; None if none was ever stored."""
        ...
