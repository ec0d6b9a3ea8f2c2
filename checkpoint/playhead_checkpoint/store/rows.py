"""Rows of checkpoints as values in a fixed order, and queries that read rows in batches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

from playhead_checkpoint.store.engine import KINDS, Row, verified
from playhead_checkpoint.store.protocol import Checkpoint, Lineage
from playhead_core.errors import CorruptTape

AT_ONCE: Final = 500
"""Values per query."""


class Session(Protocol):
    """A connection to a database; ``?`` is the placeholder of a value."""

    def execute(self, query: str, values: Sequence[Any] = ..., /) -> Any:
        """Execute a statement; returns a cursor with ``fetchone`` and ``fetchall``."""
        ...

    def executemany(self, query: str, values: Iterable[Sequence[Any]], /) -> Any:
        """Execute a statement for each of these values."""
        ...


def answers(database: Session, query: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query that ends with ``IN``, executed for `AT_ONCE` values at a time."""
    for at in range(0, len(values), AT_ONCE):
        some = values[at : at + AT_ONCE]
        yield from database.execute(f"{query}({', '.join('?' * len(some))})", some).fetchall()


def rows_after(
    database: Session, columns: str, table: str, key: str, last: int = -1
) -> Iterator[tuple[Any, ...]]:
    """Yield ``key`` and ``columns`` of the rows with keys greater than ``last``, in order of the key."""
    query = f"SELECT {key}, {columns} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {AT_ONCE}"
    while rows := database.execute(query, (last,)).fetchall():
        yield from rows
        last = rows[-1][0]


COLUMNS: Final = "id, run, span, kind, parent, time_ns, labels, thread, name, size, digest, packed"
_TYPES: Final = (bytes, bytes, bytes, str, bytes, int, str, str, str, int, bytes, bytes)


@lru_cache(maxsize=128)
def _written(labels: tuple[str, ...]) -> str:
    return json.dumps(labels)


@lru_cache(maxsize=128)
def _read(labels: str) -> tuple[str, ...]:
    return tuple(map(str, json.loads(labels)))


def row_values(row: Row) -> tuple[Any, ...]:
    """Return the values of a row, in the order of `COLUMNS`."""
    lineage, checkpoint = row.checkpoint.lineage, row.checkpoint
    labels = _written(lineage.labels)
    values = (
        lineage.run,
        lineage.span,
        lineage.kind,
        lineage.parent,
        lineage.time_ns,
        labels,
        lineage.thread,
        lineage.name,
    )
    return (checkpoint.id, *values, checkpoint.size_bytes, checkpoint.digest, row.packed)


def read_row(row: Sequence[Any]) -> Row:
    """Return the row with these values. `CorruptTape` if no store has written them."""
    id, run, span, kind, parent, time_ns, labels, thread, name, size, digest, packed = row
    try:
        if (*map(type, row),) != _TYPES:
            raise TypeError("a part of it has the wrong type")
        if size < 0 or not all(-(1 << 63) <= number < 1 << 63 for number in (time_ns, size)):
            raise ValueError("a number of it is out of range")
        if kind not in KINDS:
            raise ValueError("unknown kind")
        parsed = _read(labels)
        lineage = Lineage(run, span, kind, parent, time_ns, parsed, id, thread, name)
        return verified(Row(Checkpoint(id, lineage, size, digest), packed))
    except (TypeError, ValueError, RecursionError) as problem:
        raise CorruptTape("a checkpoint is damaged", cause=str(problem)) from None
