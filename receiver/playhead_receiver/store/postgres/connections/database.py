"""A connection to PostgreSQL as `store.sql` wants one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg

LONGEST_WORD = 600
"""Characters of a name, id or word that are kept: an entry of an index has 2700 bytes."""
AT_ONCE = 32
"""Rows that come at a time where not all are to be held."""


class PgRows:
    """What a statement gave."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def __iter__(self) -> Iterator[Any]:
        if self._cursor.description:
            yield from self._cursor
        self._cursor.close()

    @property
    def get(self) -> Any:
        """The first row, its value where it has one column; None if there is none."""
        row = self._cursor.fetchone() if self._cursor.description else None
        self._cursor.close()
        return row[0] if row is not None and len(row) == 1 else row


class _Piecemeal:
    """What a question is going to give: asked when somebody reads, rows come a few at a time."""

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
    """Statements with ``?`` on a connection; ``piecemeal``: rows come as they are read."""

    def __init__(self, connection: psycopg.Connection, piecemeal: bool = False) -> None:
        self.connection = connection
        self.numbers = count()
        """Of what is read piecemeal."""
        self._piecemeal = piecemeal
        self._changed = 0

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> PgRows | _Piecemeal:
        """Do one statement."""
        given = [clean(value) for value in values]
        if self._piecemeal:
            return _Piecemeal(self, _ours(sql), given)
        cursor: Any = self.connection.cursor(binary=True)
        cursor.execute(_ours(sql), given)
        self._changed = cursor.rowcount
        return PgRows(cursor)

    def changes(self) -> int:
        """How many rows the last statement changed."""
        return self._changed


def clean(value: Any) -> Any:
    """A value as a column can hold it: no text has a NUL in it, or is very long."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")[:LONGEST_WORD]
    return value


@lru_cache(maxsize=1024)
def _ours(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s").replace(" CROSS JOIN ", " JOIN ")
