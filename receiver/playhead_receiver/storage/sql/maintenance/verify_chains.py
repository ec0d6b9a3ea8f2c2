"""Compares the facts in the tables with the chains of their processes; for `verify`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from playhead_core.facts import Fact
from playhead_core.integrity.chain_check import ChainCheck
from playhead_receiver.storage.api.maintenance import Finding
from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.sql.tables.integrity import links_of


class ChainChecks:
    """Gets all facts, process by process, and finds where they differ from the chain of each process."""

    def __init__(self, db: Db, members: Mapping[int, Sequence[str]]) -> None:
        """``members``: the runs of each process, by its row."""
        self._db = db
        self._members = members
        rows: Any = db.execute("SELECT id, instance FROM instance ORDER BY id")
        self._instances: dict[int, bytes] = dict(rows)
        self._left = sorted(self._instances)
        self._left.reverse()
        self._row: int | None = None
        self._account: ChainCheck | None = None

    def turn_to(self, row: int) -> Iterator[Finding]:
        """Begin with the next process; yield the findings of the one before. Rows must ascend."""
        if row == self._row:
            return
        yield from self._up_to(row)
        if row in self._instances:
            self._begin(row)

    def take(self, facts: Iterable[Fact]) -> None:
        """Take facts of the current process, in order."""
        if self._account is not None:
            for fact in facts:
                self._account.take(fact)

    def unreadable(self, first: int, last: int) -> None:
        """Note numbers of facts of the current process that cannot be read."""
        if self._account is not None:
            self._account.unreadable(first, last)

    def rest(self) -> Iterator[Finding]:
        """End: yield the findings of the last process, and of chains without facts."""
        yield from self._up_to(None)

    def _begin(self, row: int) -> None:
        instance = self._instances[row]
        self._row = row
        self._account = ChainCheck.of(instance, links_of(self._db, row, instance))

    def _up_to(self, row: int | None) -> Iterator[Finding]:
        """End the current process, and check the processes before ``row`` that have no facts."""
        yield from self._end()
        while self._left and (row is None or self._left[-1] <= row):
            passed = self._left.pop()
            if passed != row:
                self._begin(passed)
                yield from self._end()

    def _end(self) -> Iterator[Finding]:
        account, row = self._account, self._row
        self._account = self._row = None
        if account is None or row is None:
            return
        name, runs = account.instance.hex(), list(self._members.get(row, ()))
        for one in account.differences():
            where = name if one.first < 0 else f"{name} {one.numbers}"
            yield Finding("chain", where, one.problem, runs)
