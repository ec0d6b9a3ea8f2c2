"""The tables of an SQLite file, as the writer of rows uses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from playhead_receiver.storage.sql.tables.database import Row, Statement
from playhead_receiver.storage.sql.tables.shared_values import SharedTable
from playhead_receiver.storage.sql.writing.draft import Begun, Change
from playhead_receiver.storage.sqlite.database import SqliteDb

SIZES = (1, 2, 4, 8, 16)
"""How many rows a statement takes. There are few sizes, so that it stays prepared; more are slower."""

LABELS = SharedTable("label", keyed=False)


class SqliteTables:
    """The tables. There is no other writer. Rows are given to statements as ``VALUES``.

    Other threads run between two statements only, so many rows are written by few statements.
    """

    labels = LABELS

    def __init__(self, connection: SqliteDb) -> None:
        self.db = connection

    def begin(self) -> Begun:
        """Read the counters."""
        counters: Any = self.db.execute("SELECT position, bundle FROM counter").get
        return Begun(*counters, others_wrote=False, others_deleted=False)

    def execute(self, statement: Statement, rows: Sequence[Row]) -> list[Any]:
        """Execute a statement for all rows, whose first values are never None; what it returns."""
        found: list[Any] = []
        for begin in range(0, len(rows), SIZES[-1]):
            some = rows[begin : begin + SIZES[-1]]
            size = next(size for size in SIZES if size >= len(some))
            empty = (None,) * ((size - len(some)) * len(statement.names))
            found += self.db.execute(_sql(statement, size), (*chain.from_iterable(some), *empty))
        return found

    def finish(self, changes: Iterable[Change], position: int, bundle: int) -> None:
        """Make all changes, in their order, and write the counters."""
        for statement, rows in changes:
            if rows:
                self.execute(statement, rows)
        self.db.execute("UPDATE counter SET position = ?, bundle = ?", (position, bundle))


_VERBS = (("INSERT INTO ", "INSERT OR ROLLBACK INTO "), ("UPDATE ", "UPDATE OR ROLLBACK "))
"""An error ends the transaction anyway. With this, SQLite copies no pages to undo a single statement."""


@lru_cache(maxsize=512)
def _sql(statement: Statement, size: int) -> str:
    row = f"({','.join('?' * len(statement.names))})"
    new = f"SELECT * FROM (VALUES {','.join([row] * size)}) WHERE column1 IS NOT NULL"
    sql = statement.sql
    for verb, ours in _VERBS:
        if sql.startswith(verb):
            sql = sql.replace(verb, ours, 1)
    return f"WITH new({', '.join(statement.names)}) AS ({new}) {sql}"
