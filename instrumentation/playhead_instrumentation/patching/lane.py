"""One lane: a name, its hash on the tape, and the counts of what was begun in it."""

from __future__ import annotations

import itertools
from typing import Final

from playhead_core.facts import Delivery, digest_of


class _Counts:
    """Counters by name. Two threads never get the same number for one name."""

    __slots__ = ("_counters", "_latest", "_start")

    def __init__(self, start: int) -> None:
        self._start = start
        self._counters: dict[str, itertools.count[int]] = {}
        self._latest: dict[str, int] = {}

    def next(self, name: str) -> int:
        """The next number of ``name``."""
        counter = self._counters.get(name)
        if counter is None:
            # Several threads that get here at once all get the first counter.
            counter = self._counters.setdefault(name, itertools.count(self._start))
        number = self._latest[name] = next(counter)
        return number

    def latest(self) -> dict[str, int]:
        """The last number given for each name."""
        return dict(self._latest)

    def clear(self) -> None:
        """Restart all counts."""
        self._counters.clear()
        self._latest.clear()


class Lane:
    """A lane, which makes requests. It holds its counters."""

    __slots__ = (
        "__weakref__",
        "_ordinals",
        "_spawned",
        "declared_on",
        "ended",
        "hash",
        "name",
        "of_request",
        "parent",
    )

    def __init__(self, name: str, parent: Lane | None = None, *, of_request: bool = False) -> None:
        """``of_request``: the lane is the root of an inbound request."""
        self.name: Final = name
        self.parent: Final = parent
        self.of_request: Final[bool] = of_request or (parent is not None and parent.of_request)
        """Whether the lane works for an inbound request."""
        self.hash: Final = int.from_bytes(digest_of(name.encode())[:8]) >> 1
        """The lane on the tape: 63 bits, so that it fits the integer type of every database."""
        self.declared_on = b""
        """The process instance on whose tape the lane is declared; empty: none."""
        self.ended: Delivery | None = None
        """The end of the thread or job, if anything was recorded in it."""
        self._ordinals = _Counts(0)
        self._spawned = _Counts(1)

    def next_ordinal(self, kind: str) -> int:
        """Number of the next exchange of this kind in this lane, from 0."""
        return self._ordinals.next(kind)

    def child(self, function: str) -> Lane:
        """The lane of the next task or thread that runs ``function``; counted from 1."""
        return Lane(f"{self.name}/{function}.{self._spawned.next(function)}", self)

    def counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Last ordinal of each kind of exchange, and number of tasks and threads of each function."""
        return self._ordinals.latest(), self._spawned.latest()

    def restart(self) -> None:
        """Restart all counts."""
        self._ordinals.clear()
        self._spawned.clear()

    def __repr__(self) -> str:
        return f"<Lane {self.name}>"
