"""The tables of an engine, as the writer of rows uses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.sql.tables.shared_values import SharedTable
from playhead_receiver.storage.sql.tables.statements import Row, Statement

Change: TypeAlias = tuple[Statement, Sequence[Row]]


class Begun(NamedTuple):
    """What a transaction begins with."""

    position: int
    """Position of the last change."""
    bundle: int
    """Number of the last bundle."""
    others_wrote: bool
    """Whether another process has written since the last transaction here."""
    others_deleted: bool
    """Whether what it wrote was a deletion, so that texts may be gone."""


class Tables(Protocol):
    """The tables of an engine in the transactions of one writer."""

    labels: SharedTable

    @property
    def db(self) -> Db:
        """The connection with the transaction."""
        ...

    def begin(self) -> Begun:
        """Read the counters, and lock them if other processes may write."""
        ...

    def execute(self, statement: Statement, rows: Sequence[Row]) -> Iterable[Any]:
        """Execute a statement for all rows, before this returns; what it returns."""
        ...

    def finish(self, changes: Iterable[Change], position: int, bundle: int) -> None:
        """Make all changes, in their order, and write the counters. The caller commits."""
        ...
