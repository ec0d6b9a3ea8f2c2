"""What ageing out needs of a store: what services did outside of requests is let go."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec

from playhead_receiver.storage.api.store import Store


class History(msgspec.Struct, frozen=True):
    """How much is kept of what a service did outside of requests, for each process."""

    time_s: float = 3600.0
    """How long it is kept, counted back from the last fact of the process."""
    size_bytes: int = 64 << 20
    """How much of it is kept, in bytes as stored."""


@runtime_checkable
class Ageing(Store, Protocol):
    """A store in which what services did outside of requests ages out."""

    def roll(self, kept: History) -> int:
        """Let some of what services did outside of requests age out; 0 if nothing is left to do for now.

        What ages out is declared (`StoredTape.aged`). What happened before the first request stays, and
        so do facts that others need: bodies that others extend, names of lanes, starts of spans that
        have not arrived.
        """
        ...
