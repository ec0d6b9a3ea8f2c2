"""The protocol of a database connection, as far as the modules here use one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol


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

    def changes(self) -> int:
        """How many rows the last statement changed."""
        ...
