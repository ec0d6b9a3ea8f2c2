"""The part of a service's tape that the run of one request needs, found by its strands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from playhead_receiver.store.sql.reader import Reader
from playhead_receiver.store.sql.tape import SqlTape
from playhead_receiver.store.strands import LANE_BYTES, NEWS, UNKNOWN, lane_strand
from playhead_semconv.facts import Fact
from playhead_semconv.folds import is_inbound
from playhead_semconv.seams import Tape
from playhead_semconv.slices import PartialTape, has_news

AT_ONCE = 256
"""Strands that one query asks for."""


def part_of_run(reader: Reader, tape: SqlTape, trace_id: bytes) -> Tape:
    """Of ``tape`` what the run of a trace needs; all of it where nobody knows what that is."""
    instance = reader.instance_id(tape.instance)
    strands = _Strands(reader, instance)
    wanted = strands.below(trace_id)
    if not wanted or strands.stretches([UNKNOWN]):
        return tape
    facts: list[Fact] = []
    begun = -1
    for fact in _boot(tape.facts()):
        begun = fact.seq
        if lane_strand(fact.lane) in wanted or is_inbound(fact) or not strands.is_of_request(fact.lane):
            facts.append(fact)
    for first in strands.stretches([*wanted, trace_id, NEWS]):
        for fact in tape.stretch(first):
            if fact.seq <= begun:
                continue
            if lane_strand(fact.lane) in wanted or has_news(fact):
                facts.append(fact)
            elif fact.trace_id == trace_id and not strands.is_of_request(fact.lane):
                facts.append(fact)
    return PartialTape(tape, facts, tape.gaps())


def _boot(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Up to the first request that came."""
    for fact in facts:
        yield fact
        if is_inbound(fact):
            return


class _Strands:
    """The strands of one process."""

    def __init__(self, reader: Reader, instance: int | None) -> None:
        self._reader = reader
        self._instance = instance
        self._of_request: dict[int, bool] = {}

    def below(self, trace_id: bytes) -> set[bytes]:
        """The lanes that requests of a trace began, and all below them."""
        found: set[bytes] = set()
        new = self._asked("SELECT DISTINCT strand FROM strand", "above", [trace_id])
        while new:
            found |= new
            new = self._asked("SELECT DISTINCT strand FROM strand", "above", new) - found
        return found

    def stretches(self, strands: Iterable[bytes]) -> list[int]:
        """Where the stretches begin that hold facts of these strands, in their order."""
        return sorted(self._asked("SELECT DISTINCT first FROM strand", "strand", strands))

    def is_of_request(self, lane: int) -> bool:
        """Whether a lane lies below the one that a request began."""
        if lane not in self._of_request:
            self._of_request[lane] = self._reaches_trace(lane)
        return self._of_request[lane]

    def _reaches_trace(self, lane: int) -> bool:
        seen: set[bytes] = set()
        above = {lane_strand(lane)}
        while above:
            if any(len(one) > LANE_BYTES for one in above):
                return True
            seen |= above
            found = self._asked("SELECT DISTINCT above FROM strand", "strand", above)
            above = {one for one in found if one is not None} - seen
        return False

    def _asked(self, sql: str, column: str, values: Iterable[bytes]) -> set[Any]:
        wanted, found = list(values), set[Any]()
        for at in range(0, len(wanted), AT_ONCE):
            some = wanted[at : at + AT_ONCE]
            marks = ", ".join("?" * len(some))
            rows = self._reader.all(
                f"{sql} WHERE instance = ? AND {column} IN ({marks})", (self._instance, *some)
            )
            found.update(row[0] for row in rows)
        return found
