"""A connection to a database, as far as the modules here need one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol


class Rows(Protocol):
    """What a statement gives."""

    def __iter__(self) -> Iterator[Any]: ...

    @property
    def get(self) -> Any:
        """The first row, its value where it has one column; None if there is none."""
        ...


class Db(Protocol):
    """A connection. Statements have ``?`` for each value, and are such that every engine takes them."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows:
        """Do one statement."""
        ...

    def changes(self) -> int:
        """How many rows the last statement changed."""
        ...
