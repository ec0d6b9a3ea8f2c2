"""What keeps a store in order: checking it, deleting from it, copying it. Beside the Store protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from playhead_receiver.store.protocol.store import Meaning, Store
from playhead_receiver.store.runs.attribute_keys import Need
from playhead_semconv.custody.tombstones import Tombstone, Why

if TYPE_CHECKING:
    from playhead_receiver.store.keeping.service_history import History

HELD = "held"
"""Mark of a run that is never deleted."""
FLAGGED = "flagged"
"""Mark of a run that somebody wants to keep for longer."""
TEST = "test"
"""Mark of a run that is of no interest soon."""
IMPORTED = "imported"
"""Mark of a run that came from a file which was not written here: its program is asked for."""
MARKS = (HELD, FLAGGED, TEST, IMPORTED)


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong with a store."""

    what: str
    """``database``, ``span``, ``text``, ``link``, ``facts``, ``chain``, ``blob``, ``run`` or
    ``tombstone``."""
    where: str
    problem: str
    runs: list[str] = []
    """Trace ids of the runs that it concerns, as far as that is known."""


class Deleted(msgspec.Struct, frozen=True):
    """What is no more."""

    runs: int = 0
    spans: int = 0
    facts: int = 0
    blobs: int = 0
    wiped: bool = True
    """Nothing of it is left in the file and its log; False while a reader holds an older state."""


AskedFor: TypeAlias = Callable[[bytes], bool]
"""Whether a trace is one to look for something in."""
LOOKED_AT = 10_000
"""Texts in which something is said: of more, the newest are looked at."""


class Hit(msgspec.Struct, frozen=True):
    """Where something is said."""

    trace_id: str
    span_id: str
    """The span that was the first to say it, as far as it is kept."""
    time_ns: int
    excerpt: str
    """What stands around the first of the words."""


class Lag(msgspec.Struct, frozen=True):
    """What is stored and cannot be searched yet."""

    bundles: int
    """Groups of spans."""
    fact_runs: int
    """Groups of facts."""


class Upkeep(Store, Protocol):
    """A store that can be kept in order. Readers and commits go on meanwhile."""

    def verify(self) -> Iterator[Finding]:
        """Read everything, compare it with its digests and with what refers to it; what is wrong."""
        ...

    def not_chained(self) -> int:
        """How many processes have facts that came before there were chains."""
        ...

    def tombstones(self) -> Iterator[Tombstone]:
        """What is left of deleted runs, oldest first."""
        ...

    def delete(self, trace_ids: Sequence[bytes], by: str = "", why: Why = Why.DELETED) -> Deleted:
        """Delete runs with all that only they hold: spans, facts, texts, blobs, names of resources.

        ``by``: who does it; a tombstone says so.

        The tape of a process that other runs share stays, numbered as it was, without the content that
        was theirs. What is deleted is overwritten, not only forgotten. Names are not given again.
        """
        ...

    def sweep(self) -> Deleted:
        """Delete what nothing refers to, such as blobs of a commit that never came to its end."""
        ...

    def mark(self, trace_id: bytes, word: str, on: bool = True) -> None:
        """Put one of `MARKS` on a run, or take it off."""
        ...

    def marks(self) -> dict[bytes, set[str]]:
        """The marks of all runs that have any."""
        ...

    def to_look_at(self, limit: int = 10_000) -> tuple[dict[bytes, list[bytes]], int]:
        """Ids of the requests whose meaning the receiver has not looked for yet, by trace id.

        And the position up to which these are all, for `looked_at`; 0 where nothing is new. Requests
        that an older version stored are passed over.
        """
        ...

    def looked_at(self, position: int) -> None:
        """Note that all spans up to a position were looked at."""
        ...

    def mean(self, trace_id: bytes, found: Mapping[bytes, Meaning]) -> int:
        """Say what spans of a trace mean, by span id; how many of them are there.

        Their bytes stay as they came in; `StoredSpan.wire`, `outline` and summaries tell it.
        """
        ...

    def sum_up(self, limit: int = 64) -> int:
        """Bring summaries of runs up to date, at most ``limit``; how many were not.

        Lists are right without it, and slower the more runs have changed since.
        """
        ...

    def roll(self, kept: History) -> int:
        """Let what services did for no request age out, some of it; 0 when that is all for now.

        What goes is declared (`StoredTape.aged`). What came before the first request stays, and so do
        facts that others need: what they go on from, names of lanes, starts of spans that have not come.
        """
        ...

    def set_aside(self) -> int:
        """How many runs `sum_up` goes past, as something in them cannot be summed up."""
        ...

    def compact(self, quiet_s: float = 60.0) -> int:
        """Join frames of runs to which nothing came for ``quiet_s``; how many blocks that made.

        What is stored is the same afterwards, in fewer bytes.
        """
        ...

    def housekeeping(self) -> AbstractContextManager[bool]:
        """Whether no other receiver keeps this store in order; then none does in the ``with`` block."""
        ...

    def index(self) -> int:
        """Make some more of the store searchable; 0 when all of it is."""
        ...

    def unindex(self) -> None:
        """Forget the index of the search; `index` makes it again, and nothing is found until it has."""
        ...

    def lag(self) -> Lag:
        """How far the search is behind."""
        ...

    def search(self, text: str, limit: int = 20, asked_for: AskedFor | None = None) -> list[Hit]:
        """Where all words are said together, newest first. `UsageError` if there is no word.

        ``"…"`` is a phrase, ``*`` behind a word stands for any end of it. What was said again is
        found where it was said first. ``asked_for``: in every trace of which this is true, instead.
        """
        ...

    def having(self, needs: Sequence[Need]) -> set[bytes] | None:
        """Trace ids of what may have, for each need, one of its `attribute_keys`: not all of them do.

        What is not indexed yet or goes on is among them. None: there is no index, so all may.
        """
        ...

    def size_bytes(self) -> int:
        """Bytes on disk, as far as a look at it tells: room that a deletion left may count."""
        ...

    def used_bytes(self) -> int:
        """Bytes that what is stored takes; what was deleted does not count. May read all rows."""
        ...

    def backup(self, folder: Path) -> int:
        """Copy one state of the store into an empty or new folder; `StoreError` if it is neither.

        How many large bodies are missing there, as they are here: gone, or damaged.
        """
        ...
