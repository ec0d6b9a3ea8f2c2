"""The part of a service's tape that the run of one request needs, found by the request index."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from playhead_core.facts import Fact
from playhead_core.tape.folds import is_inbound
from playhead_core.tape.protocols import Tape
from playhead_core.tape.slices import PartialTape, has_news
from playhead_receiver.storage.runs.request_index import (
    LANE_BYTES,
    NEWS,
    TRACE_BYTES,
    UNKNOWN,
    lane_key,
)
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.sql.reading.tape import SqlTape

AT_ONCE = 256
"""Keys in one query."""


def part_of_run(reader: SqlReader, tape: SqlTape, trace_id: bytes) -> Tape:
    """The part of ``tape`` that the run of a trace needs; all of it if the part cannot be determined."""
    instance = reader.instance_id(tape.instance)
    entries = RequestIndex(reader, instance)
    wanted = entries.below(trace_id)
    if not wanted or entries.frames([UNKNOWN]):
        return tape
    facts: list[Fact] = []
    begun = -1
    for fact in _boot(tape.facts()):
        begun = fact.seq
        if lane_key(fact.lane) in wanted or is_inbound(fact) or not entries.is_of_request(fact.lane):
            facts.append(fact)
    for first in entries.frames([*wanted, trace_id, NEWS]):
        for fact in tape.frame(first):
            if fact.seq <= begun:
                continue
            if lane_key(fact.lane) in wanted or has_news(fact):
                facts.append(fact)
            elif fact.trace_id == trace_id and not entries.is_of_request(fact.lane):
                facts.append(fact)
    return PartialTape(tape, facts, tape.gaps())


def _boot(facts: Iterable[Fact]) -> Iterator[Fact]:
    """The facts up to the first inbound request."""
    for fact in facts:
        yield fact
        if is_inbound(fact):
            return


class RequestIndex:
    """The request index of one process."""

    def __init__(self, reader: SqlReader, instance: int | None) -> None:
        self._reader = reader
        self._instance = instance
        self._of_request: dict[int, bool] = {}

    def below(self, trace_id: bytes) -> set[bytes]:
        """Keys of the lanes that requests of a trace began, and of all lanes below them."""
        found: set[bytes] = set()
        new = self._query("SELECT DISTINCT strand FROM strand", "above", [trace_id])
        while new:
            found |= new
            new = self._query("SELECT DISTINCT strand FROM strand", "above", new) - found
        return found

    def frames(self, entries: Iterable[bytes]) -> list[int]:
        """First numbers of the frames that contain facts with these keys, ascending."""
        return sorted(self._query("SELECT DISTINCT first FROM strand", "strand", entries))

    def is_of_request(self, lane: int) -> bool:
        """Whether a lane was begun by a request, or lies below such a lane."""
        if lane not in self._of_request:
            self._of_request[lane] = self._reaches_trace(lane)
        return self._of_request[lane]

    def traces_of(self, lanes: Iterable[int]) -> dict[int, set[bytes]]:
        """For each lane, the traces of the requests that it lies below; empty for the process's own."""
        above: dict[bytes, set[bytes]] = {}
        new = {lane_key(lane) for lane in lanes}
        while new:
            above |= {one: set() for one in new}
            for some in _portions(new):
                rows = self._reader.all(
                    "SELECT DISTINCT strand, above FROM strand WHERE instance = ? AND above IS NOT NULL"
                    f" AND strand IN (?{', ?' * (len(some) - 1)})",
                    (self._instance, *some),
                )
                for one, upper in rows:
                    above[one].add(upper)
            upper = {one for some in new for one in above[some] if len(one) == LANE_BYTES}
            new = upper - above.keys()
        return {lane: _traces_above(lane_key(lane), above) for lane in lanes}

    def keys_elsewhere(self, entries: Iterable[bytes], but: Collection[int]) -> set[bytes]:
        """Those of ``keys`` that have facts in frames other than those that begin at ``but``."""
        found: set[bytes] = set()
        others = f" AND first NOT IN (?{', ?' * (len(but) - 1)})" if but else ""
        for column in ("strand", "above"):
            for some in _portions(entries):
                rows = self._reader.all(
                    f"SELECT DISTINCT {column} FROM strand WHERE instance = ?"
                    f" AND {column} IN (?{', ?' * (len(some) - 1)}){others}",
                    (self._instance, *some, *but),
                )
                found.update(row[0] for row in rows)
        return found

    def left_of_deleted(self) -> list[bytes]:
        """Traces that have facts here, but no run."""
        rows = self._reader.all(
            "SELECT DISTINCT strand FROM strand WHERE instance = ? AND length(strand) = ?"
            " AND NOT EXISTS (SELECT 1 FROM run WHERE run.trace_id = strand.strand)",
            (self._instance, TRACE_BYTES),
        )
        return [row[0] for row in rows]

    def first_request(self) -> int | None:
        """First number of the frame with the first inbound request; None if there was none."""
        found = self._reader.one(
            "SELECT min(first) FROM strand WHERE instance = ? AND length(above) = ?",
            (self._instance, TRACE_BYTES),
        )
        return None if found is None else found[0]

    def _reaches_trace(self, lane: int) -> bool:
        seen: set[bytes] = set()
        above = {lane_key(lane)}
        while above:
            if any(len(one) > LANE_BYTES for one in above):
                return True
            seen |= above
            found = self._query("SELECT DISTINCT above FROM strand", "strand", above)
            above = {one for one in found if one is not None} - seen
        return False

    def _query(self, sql: str, column: str, values: Iterable[bytes]) -> set[Any]:
        found: set[Any] = set()
        for some in _portions(values):
            marks = ", ".join("?" * len(some))
            rows = self._reader.all(
                f"{sql} WHERE instance = ? AND {column} IN ({marks})", (self._instance, *some)
            )
            found.update(row[0] for row in rows)
        return found


def _traces_above(key: bytes, above: dict[bytes, set[bytes]]) -> set[bytes]:
    found: set[bytes] = set()
    waiting, seen = [key], {key}
    while waiting:
        for one in above.get(waiting.pop(), ()):
            if len(one) == TRACE_BYTES:
                found.add(one)
            elif one not in seen:
                seen.add(one)
                waiting.append(one)
    return found


def _portions(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = iter(values)
    while some := list(islice(rest, AT_ONCE)):
        yield some
