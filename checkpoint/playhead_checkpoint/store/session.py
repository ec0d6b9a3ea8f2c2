"""A connection to a database, and questions to it about some values at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

AT_ONCE: Final = 500
"""Values per question."""


class Session(Protocol):
    """A connection to a database; values stand for ``?``."""

    def execute(self, question: str, values: Sequence[Any] = ..., /) -> Any:
        """Execute a statement; its rows, with ``fetchone`` and ``fetchall``."""
        ...

    def executemany(self, question: str, values: Iterable[Sequence[Any]], /) -> Any:
        """Execute a statement for each of these values."""
        ...


def answers(database: Session, question: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of a question that ends with ``IN``, asked for some values at a time."""
    for at in range(0, len(values), AT_ONCE):
        some = values[at : at + AT_ONCE]
        yield from database.execute(f"{question}({', '.join('?' * len(some))})", some).fetchall()


def rows_after(
    database: Session, columns: str, table: str, key: str, last: int = -1
) -> Iterator[tuple[Any, ...]]:
    """The rows of a table behind one, in the order of their keys, which stand before the columns."""
    question = f"SELECT {key}, {columns} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {AT_ONCE}"
    while rows := database.execute(question, (last,)).fetchall():
        yield from rows
        last = rows[-1][0]
