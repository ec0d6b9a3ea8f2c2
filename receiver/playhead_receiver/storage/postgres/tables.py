"""The tables of a PostgreSQL schema, as the writer of rows uses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from playhead_receiver.storage.postgres.database import PgDb, clean
from playhead_receiver.storage.sql.tables.database import Row, Statement
from playhead_receiver.storage.sql.tables.shared_values import SharedTable
from playhead_receiver.storage.sql.writing.draft import Begun, Change

LABELS = SharedTable("label", keyed=True)

_TYPES = {"int": "int8", "bytes": "bytea", "text": "text", "bool": "bool"}


class PostgresTables:
    """The tables, which other receivers may write too. Rows are given to statements as arrays.

    A writer holds a lock on the row of `counter`, so only one receiver writes at a time.
    """

    labels = LABELS

    def __init__(self) -> None:
        self._db: PgDb | None = None
        self._writes = self._deletions = -1

    @property
    def db(self) -> PgDb:
        """The connection with the transaction."""
        assert self._db is not None, "a transaction is under way"
        return self._db

    def use(self, db: PgDb) -> None:
        """Take another connection."""
        self._db = db

    def begin(self) -> Begun:
        """Lock the row of counters; what has changed since the last transaction here."""
        counters: Any = self.db.execute(
            "SELECT position, bundle, writes, deletions FROM counter FOR UPDATE"
        ).get
        position, bundle, writes, deletions = counters
        begun = Begun(position, bundle, writes != self._writes, deletions != self._deletions)
        self._writes, self._deletions = writes, deletions
        return begun

    def execute(self, statement: Statement, rows: Sequence[Row]) -> Iterable[Any]:
        """Execute a statement for all rows; what it returns."""
        return self.db.execute(_sql(statement), _columns(rows)) if rows else ()

    def finish(self, changes: Iterable[Change], position: int, bundle: int) -> None:
        """Make all changes and write the counters, in one round trip to the server."""
        connection = self.db.connection
        with connection.pipeline(), connection.cursor() as cursor:
            for statement, rows in changes:
                if rows:
                    cursor.execute(_sql(statement).replace("?", "%s"), _columns(rows))  # type: ignore[arg-type]
            cursor.execute(
                "UPDATE counter SET position = %s, bundle = %s, writes = %s",
                (position, bundle, self._writes + 1),
            )
        self._writes += 1


def _columns(rows: Sequence[Row]) -> list[list[Any]]:
    return [[clean(value) for value in column] for column in zip(*rows, strict=True)]


@lru_cache(maxsize=256)
def _sql(statement: Statement) -> str:
    arrays = ", ".join(f"?::{_TYPES[type]}[]" for type in statement.types)
    new = f"new({', '.join(statement.names)}) AS (SELECT * FROM unnest({arrays}))"
    return f"WITH {new} {statement.sql}"
