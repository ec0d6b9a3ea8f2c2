"""Checks the facts of a process against its hash chain."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain as flattened
from itertools import pairwise

import msgspec

from playhead_core.errors import CorruptTape
from playhead_core.facts import Fact
from playhead_core.integrity.chain import (
    DIGEST_BYTES,
    IN_PLACE,
    Link,
    LinkStatement,
    What,
    fact_digest,
    first_link,
    joined,
    statement_of,
)
from playhead_core.integrity.number_ranges import Ranges, extend, merged, outside, within

COMPARED = 64
"""Differing facts that are checked for having been swapped."""

ABSENT_DIGEST = bytes(DIGEST_BYTES)
"""Placeholder for a digest that is not in the file; no fact has it."""
MOST_PROBLEMS = 100
"""Wrong links after which the rest of the chain is not checked."""


class ChainDifference(msgspec.Struct, frozen=True):
    """Facts, or a link, that do not match the chain."""

    first: int
    """Number of the first fact; -1 if the chain itself is wrong."""
    last: int
    problem: str

    @property
    def numbers(self) -> str:
        """The numbers in readable form."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass
class ChainCheck:
    """Checks the facts of one instance against its chain.

    Build it from the links in order (`of`). Pass every fact to `take`, in the order of their numbers,
    and the numbers of unreadable facts to `unreadable`. Then iterate over `differences`.
    """

    instance: bytes
    head: bytes = b""
    """The last link; empty if there is no chain."""
    links: int = 0
    covered: int = 0
    """How many facts were stored, according to the chain."""
    said: list[LinkStatement] = field(default_factory=list[LinkStatement])
    """Later statements: how stored facts were changed."""
    before: Ranges = field(default_factory=Ranges)
    """Numbers of facts that were stored before there was a chain."""
    _problems: list[ChainDifference] = field(default_factory=list[ChainDifference])
    _firsts: list[int] = field(default_factory=list[int])
    _ranges: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    """For each range that was stored: its last number, and the digests."""
    _in_place: dict[int, bytes] = field(default_factory=dict[int, bytes])
    _gone: Ranges = field(default_factory=Ranges)
    _here: Ranges = field(default_factory=Ranges)
    _others: dict[int, Fact] = field(default_factory=dict[int, Fact])
    """Facts that differ, by number; only the first `COMPARED`."""
    _differ: Ranges = field(default_factory=Ranges)

    @classmethod
    def of(cls, instance: bytes, links: Iterable[Link]) -> ChainCheck:
        """Return a check against ``links``, in their order."""
        check = cls(instance)
        for link in links:
            check._add(link)
        check._order()
        return check

    def _add(self, link: Link) -> None:
        if len(self._problems) >= MOST_PROBLEMS:
            return
        before = self.head or first_link(self.instance)
        self.head = link.link
        self.links += 1
        if joined(before, link.digest, link.said) != link.link or link.instance != self.instance:
            self._wrong(f"link {self.links} does not follow from the previous one")
        try:
            said = statement_of(link)
        except CorruptTape as problem:
            self._wrong(f"link {self.links}: {problem.what}")
            return
        what, digests = said.what, link.digests
        if what == What.CAME:
            ((first, last),) = said.ranges
            self._firsts.append(first)
            self._ranges.append((last, digests))
            self.covered += last - first + 1
            return
        self.said.append(said)
        if what == What.BEFORE:
            self.before += said.ranges
        elif what == What.AGED:
            self._gone += said.ranges
        elif what in IN_PLACE:
            numbers = flattened.from_iterable(range(first, last + 1) for first, last in said.ranges)
            for place, seq in enumerate(numbers):
                at = place * DIGEST_BYTES
                self._in_place[seq] = digests[at : at + DIGEST_BYTES] or ABSENT_DIGEST

    def _order(self) -> None:
        order = sorted(range(len(self._firsts)), key=self._firsts.__getitem__)
        self._firsts = [self._firsts[place] for place in order]
        self._ranges = [self._ranges[place] for place in order]
        for (first, (last, _)), after in pairwise(zip(self._firsts, self._ranges, strict=True)):
            if after[0] <= last:
                self._wrong(f"two links have fact {after[0]}, the first of them from fact {first} on")
        self._gone = merged(self._gone)
        self.before = merged(self.before)

    def _wrong(self, problem: str) -> None:
        self._problems.append(ChainDifference(-1, -1, problem))

    @property
    def problems(self) -> list[str]:
        """The problems of the chain itself."""
        return [one.problem for one in self._problems]

    def expected(self, seq: int) -> bytes | None:
        """Return the digest that the fact should have now; None if the chain does not have it."""
        return self._in_place.get(seq) or self._came(seq)

    def is_before(self, seq: int) -> bool:
        """Whether a fact was stored before there was a chain."""
        return within(self.before, seq)

    def _came(self, seq: int) -> bytes | None:
        place = bisect_right(self._firsts, seq) - 1
        if place < 0:
            return None
        last, digests = self._ranges[place]
        if seq > last or not digests:
            return None
        at = (seq - self._firsts[place]) * DIGEST_BYTES
        return digests[at : at + DIGEST_BYTES]

    def take(self, fact: Fact, digest: bytes | None = None) -> None:
        """Check one fact. ``digest``: its digest, if it is known already."""
        seq = fact.seq
        if self._here and seq <= self._here[-1][1]:
            self._problems.append(ChainDifference(seq, seq, "is out of order or duplicated"))
        extend(self._here, seq, seq)
        digest = digest or fact_digest(fact)
        if digest == self.expected(seq) or digest == self._came(seq) or within(self.before, seq):
            return
        extend(self._differ, seq, seq)
        if len(self._others) < COMPARED:
            self._others[seq] = fact

    def unreadable(self, first: int, last: int) -> None:
        """Note facts that are there but cannot be read; the caller reports them."""
        extend(self._here, first, last)

    def differences(self) -> Iterator[ChainDifference]:
        """Yield the problems, after all facts were taken."""
        yield from self._problems
        if not self.links:
            if self._here:
                yield ChainDifference(-1, -1, "has facts but no chain")
            return
        missing = list(self._missing())
        origins = self._origins(missing)
        moved = set(origins.values())
        for seq in sorted(origins):
            yield ChainDifference(seq, seq, f"has the content of fact {origins[seq]}")
        for first, last in self._differ:
            for begin, end in _but(first, last, origins):
                if self.expected(begin) is None:
                    yield from self._unknown(begin, end)
                else:
                    yield ChainDifference(begin, end, _replaced(begin, end))
        lost = [seq for seq in origins if seq not in moved and self._came(seq) is not None]
        for first, last in merged([*missing, *((seq, seq) for seq in lost)]):
            for begin, end in _but(first, last, moved):
                yield ChainDifference(begin, end, "is missing" if begin == end else "are missing")
        for seq, origin in sorted(origins.items()):
            if origin not in origins:
                yield ChainDifference(origin, origin, f"is stored as fact {seq}")

    def _unknown(self, first: int, last: int) -> Iterator[ChainDifference]:
        """Report the facts that differ and that the chain cannot explain as moved."""
        added: Ranges = []
        replaced: Ranges = []
        for seq in range(first, last + 1):
            extend(added if self.expected(seq) is None else replaced, seq, seq)
        for begin, end in added:
            was = "was" if begin == end else "were"
            yield ChainDifference(begin, end, f"{was} added: no link of the chain covers it")
        for begin, end in replaced:
            yield ChainDifference(begin, end, _replaced(begin, end))

    def _missing(self) -> Iterator[tuple[int, int]]:
        """Yield numbers that were stored, are not recorded as removed, and are missing."""
        here = merged([*self._here, *self._gone])
        came = [(first, last) for first, (last, _) in zip(self._firsts, self._ranges, strict=True)]
        for first, last in merged([*came, *self.before]):
            yield from outside(first, last, here)

    def _origins(self, missing: Ranges) -> dict[int, int]:
        """Map the numbers of differing facts to the numbers under which they were stored."""
        lost: list[int] = []
        for first, last in missing:
            lost += range(first, min(last + 1, first + COMPARED - len(lost)))
        candidates = [*self._others, *lost][: 2 * COMPARED]
        found: dict[int, int] = {}
        for seq, fact in self._others.items():
            for other in (seq + 1, seq - 1, *candidates):
                if other != seq and fact_digest(_renumbered(fact, other)) == self._came(other):
                    found[seq] = other
                    break
        return found


def _renumbered(fact: Fact, seq: int) -> Fact:
    return msgspec.structs.replace(fact, seq=seq)


def _replaced(first: int, last: int) -> str:
    return "was replaced" if first == last else "were replaced"


def _but(first: int, last: int, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield a range without single numbers."""
    yield from outside(first, last, sorted((seq, seq) for seq in numbers))
