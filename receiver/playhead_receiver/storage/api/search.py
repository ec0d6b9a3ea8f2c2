"""Search: an index that is filled after commits, and queries to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from playhead_receiver.storage.api.store import Store
from playhead_receiver.storage.values.run_summaries import Need

TraceFilter: TypeAlias = Callable[[bytes], bool]
"""Whether the trace with an id is to be searched."""
MOST_EXAMINED = 10_000
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
    """Whether the match is in the body of a request."""
    effect: str = ""
    """Kind of the effect that contains the match (``stdout``, …); empty for other matches."""
    log: bool = False
    """Whether the match is in a log record; its ``span_id`` may be empty."""


class Lag(msgspec.Struct, frozen=True):
    """How much is stored and not searchable yet."""

    bundles: int
    """Groups of spans."""
    fact_runs: int
    """Groups of facts."""

    @property
    def groups(self) -> int:
        """Groups of both."""
        return self.bundles + self.fact_runs


@runtime_checkable
class Search(Store, Protocol):
    """A store with an index of texts and attributes."""

    def index(self) -> int:
        """Make some more of the store searchable; 0 if all of it is."""
        ...

    def unindex(self) -> None:
        """Delete the search index. `index` builds it again; searches find nothing until then."""
        ...

    def lag(self) -> Lag:
        """How far the search index is behind the store."""
        ...

    def search(self, text: str, limit: int = 20, trace_filter: TraceFilter | None = None) -> list[Hit]:
        """Find where all words occur together, newest first. `UsageError` if ``text`` has no word.

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
