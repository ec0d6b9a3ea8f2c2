"""A PostgreSQL connection that implements the protocol of `storage.sql`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg

from playhead_receiver.storage.sql.tables.database import Db, ManyRows, Row

LONGEST_WORD = 600
"""Most characters of a stored name, id or word: an index entry is limited to 2700 bytes."""
AT_ONCE = 32
"""Rows fetched at a time if not all are to be in memory."""


class PgRows:
    """The result of a statement."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def __iter__(self) -> Iterator[Any]:
        if self._cursor.description:
            yield from self._cursor
        self._cursor.close()

    @property
    def get(self) -> Any:
        """The first row, or its value if it has one column; None if there is no row."""
        row = self._cursor.fetchone() if self._cursor.description else None
        self._cursor.close()
        return row[0] if row is not None and len(row) == 1 else row


class _Piecemeal:
    """The result of a query. It is executed at the first read; a few rows are fetched at a time."""

    def __init__(self, db: PgDb, sql: str, values: Sequence[Any]) -> None:
        self._db, self._sql, self._values = db, sql, values

    def __iter__(self) -> Iterator[Any]:
        with self._db.connection.cursor(name=f"read{next(self._db.numbers)}") as cursor:
            cursor.itersize = AT_ONCE
            cursor.execute(self._sql.encode(), self._values, binary=True)
            yield from cursor

    @property
    def get(self) -> Any:
        cursor = self._db.connection.cursor(binary=True)
        cursor.execute(self._sql.encode(), self._values)
        return PgRows(cursor).get


class PgDb:
    """Executes statements with ``?`` on a connection; ``piecemeal``: fetches rows as they are read."""

    def __init__(self, connection: psycopg.Connection, piecemeal: bool = False) -> None:
        self.connection = connection
        self.numbers = count()
        """Numbers for the names of server-side cursors."""
        self._piecemeal = piecemeal
        self._changed = 0

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> PgRows | _Piecemeal:
        """Execute one statement."""
        given = [clean(value) for value in values]
        if self._piecemeal:
            return _Piecemeal(self, _ours(sql), given)
        cursor: Any = self.connection.cursor(binary=True)
        cursor.execute(_ours(sql), given)
        self._changed = cursor.rowcount
        return PgRows(cursor)

    def rows(self, select: ManyRows, values: Sequence[Any] = (), /) -> list[Row]:
        """All rows of a query, fetched at once."""
        return list(self.execute(select.sql, values))

    def changes(self) -> int:
        """How many rows the last statement changed."""
        return self._changed


def clean(value: Any) -> Any:
    """A value that a column can hold: NULs in texts are replaced, and long texts cut."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")[:LONGEST_WORD]
    return value


@lru_cache(maxsize=1024)
def _ours(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s").replace(" CROSS JOIN ", " JOIN ")


ROW_BYTES = 28
"""Overhead of a row in addition to its values."""

_COLUMNS = (
    "SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
    " JOIN pg_namespace ON pg_namespace.oid = relnamespace"
    " WHERE nspname = ? AND relkind = 'r' AND attnum > 0 AND NOT attisdropped"
)


def used_by_rows(db: Db, schema: str) -> int:
    """Bytes of the rows of all tables, and a share of their indexes. Reads all rows, no long values."""
    tables: dict[str, list[str]] = {}
    for table, column in db.execute(_COLUMNS, (schema,)):
        tables.setdefault(table, []).append(column)
    used = 0.0
    for table, columns in tables.items():
        qualified = f'"{schema}".{table}'
        values = " + ".join(f"coalesce(pg_column_size({column}), 0)" for column in columns)
        rows, held, files, indexes = _first(
            db.execute(
                f"SELECT count(*), coalesce(sum({values}), 0)::bigint, pg_table_size('{qualified}'),"
                f" pg_indexes_size('{qualified}') FROM {qualified}"
            ).get
        )
        # Rows and indexes lose content alike, so the sizes of their files give the ratio of the two.
        used += (held + ROW_BYTES * rows) * (1 + indexes / max(files, 1))
    return round(used)


def _first(row: Any) -> tuple[int, int, int, int]:
    return row
