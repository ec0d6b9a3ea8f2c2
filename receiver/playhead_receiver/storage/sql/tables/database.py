"""A database connection, and statements over many rows, in SQL that every engine accepts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias


class Rows(Protocol):
    """The result of a statement."""

    def __iter__(self) -> Iterator[Any]: ...

    @property
    def get(self) -> Any:
        """The first row, or its value if it has one column; None if there is no row."""
        ...


class Db(Protocol):
    """A connection. Statements have ``?`` for each value, and use only SQL that every engine accepts."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows:
        """Execute one statement."""
        ...

    def rows(self, select: ManyRows, values: Sequence[Any] = (), /) -> list[Row]:
        """All rows of a query, fetched at once."""
        ...

    def changes(self) -> int:
        """How many rows the last statement changed."""
        ...


Row: TypeAlias = tuple[Any, ...]


class ManyRows:
    """A query for many rows without NULL, which an engine fetches at once (`Db.rows`)."""

    __slots__ = ("names", "sql", "types")

    def __init__(self, columns: str, sql: str) -> None:
        """``columns``: ``NAME:TYPE …``, each ``int`` or ``bytes``. ``sql``: what follows ``FROM``."""
        parts = [column.partition(":") for column in columns.split()]
        self.names = ", ".join(name for name, _, _ in parts)
        self.types = tuple(type for _, _, type in parts)
        self.sql = f"SELECT {self.names} FROM {sql}"


class Statement:
    """SQL over ``new``, a table of the caller's rows. The engine fills it: see `Tables`."""

    __slots__ = ("names", "sql", "types")

    def __init__(self, columns: str, sql: str) -> None:
        """``columns`` of ``new``: ``NAME:TYPE …``, each ``int``, ``bytes``, ``text`` or ``bool``."""
        parts = [column.partition(":") for column in columns.split()]
        self.names = tuple(name for name, _, _ in parts)
        self.types = tuple(type for _, _, type in parts)
        self.sql = sql


def insert(table: str, columns: str, *, conflict: str = "") -> Statement:
    """Insert the rows. ``conflict``: what is done if there is such a row already."""
    names = ", ".join(column.partition(":")[0] for column in columns.split())
    then = f" ON CONFLICT {conflict}" if conflict else ""
    return Statement(columns, f"INSERT INTO {table}({names}) SELECT * FROM new WHERE true{then}")
