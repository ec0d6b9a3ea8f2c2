"""Writes the meanings of requests without a GenAI instrumentation into the rows of their spans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.sql.tables.shared_values import SharedTable, count_out
from playhead_receiver.storage.values.span_labels import Meaning
from playhead_receiver.storage.writing.prepare import encode_label


def put(db: Db, trace_id: bytes, found: Mapping[bytes, Meaning], labels: SharedTable) -> int:
    """Change the rows of those spans that exist; return how many."""
    changed = 0
    for span_id, meaning in found.items():
        before: Any = db.execute(
            "SELECT label FROM span WHERE trace_id = ? AND span_id = ?", (trace_id, span_id)
        ).get
        if before is None:
            continue
        after, usage = labels.put(db, encode_label(meaning.label)), meaning.usage
        db.execute(
            "UPDATE span SET label = ?, input = ?, cached = ?, cache_write = ?, output = ?,"
            " reasoning = ? WHERE trace_id = ? AND span_id = ?",
            (
                after,
                usage.input,
                usage.cached,
                usage.cache_write,
                usage.output,
                usage.reasoning,
                trace_id,
                span_id,
            ),
        )
        db.execute("UPDATE label SET uses = uses + 1 WHERE id = ?", (after,))
        count_out(db, "label", before, 1)
        changed += 1
    if changed:
        db.execute(
            "UPDATE run SET stale = (SELECT position FROM counter) WHERE trace_id = ?", (trace_id,)
        )
    return changed
