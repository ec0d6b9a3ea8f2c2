"""The row of a checkpoint: as values in a fixed order, for tables and for the wire."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from playhead_checkpoint.store.engine import KINDS, Row, verified
from playhead_checkpoint.store.protocol import Checkpoint, Lineage
from playhead_core.errors import CorruptTape

COLUMNS: Final = "id, run, span, kind, parent, time_ns, labels, thread, name, size, digest, packed"
_TYPES: Final = (bytes, bytes, bytes, str, bytes, int, str, str, str, int, bytes, bytes)


@lru_cache(maxsize=128)
def _written(labels: tuple[str, ...]) -> str:
    return json.dumps(labels)


@lru_cache(maxsize=128)
def _read(labels: str) -> tuple[str, ...]:
    return tuple(map(str, json.loads(labels)))


def row_values(row: Row) -> tuple[Any, ...]:
    """The values of a row, in the order of `COLUMNS`."""
    lineage, checkpoint = row.checkpoint.lineage, row.checkpoint
    labels = _written(lineage.labels)
    told = (
        lineage.run,
        lineage.span,
        lineage.kind,
        lineage.parent,
        lineage.time_ns,
        labels,
        lineage.thread,
        lineage.name,
    )
    return (checkpoint.id, *told, checkpoint.size_bytes, checkpoint.digest, row.packed)


def read_row(row: Sequence[Any]) -> Row:
    """The row of such values. `CorruptTape`: they are not what was written."""
    id, run, span, kind, parent, time_ns, labels, thread, name, size, digest, packed = row
    try:
        if (*map(type, row),) != _TYPES:
            raise TypeError("a part of it has the wrong type")
        if kind not in KINDS:
            raise ValueError("its kind is none")
        said = _read(labels)
        lineage = Lineage(run, span, kind, parent, time_ns, said, id, thread, name)
        return verified(Row(Checkpoint(id, lineage, size, digest), packed))
    except (TypeError, ValueError, RecursionError) as problem:
        raise CorruptTape("a checkpoint is damaged", cause=str(problem)) from None
