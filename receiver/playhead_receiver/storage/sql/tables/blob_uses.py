"""Which blobs stored facts need: a row per blob that a run of facts offloaded (table ``blob_use``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.writing.prepare import blob_digests

if TYPE_CHECKING:
    from playhead_receiver.storage.sql.reading.reader import SqlReader

AT_ONCE = 500


def uses_of(position: int, offloaded: bytes | None) -> list[tuple[bytes, int]]:
    """The rows for a run of facts, which is identified by its position."""
    return [(digest, position) for digest in sorted(blob_digests(offloaded))]


def forget_uses(db: Db, position: int, digests: Iterable[bytes]) -> None:
    """Delete the rows that say that a run of facts needs these blobs."""
    for digest in digests:
        db.execute("DELETE FROM blob_use WHERE digest = ? AND position = ?", (digest, position))


def unused(reader: SqlReader, candidates: Collection[bytes]) -> set[bytes]:
    """Those of ``candidates`` that no committed facts need."""
    left, asked = set(candidates), sorted(candidates)
    for at in range(0, len(asked), AT_ONCE):
        some = asked[at : at + AT_ONCE]
        marks = ", ".join("?" * len(some))
        rows = reader.all(f"SELECT DISTINCT digest FROM blob_use WHERE digest IN ({marks})", some)
        left.difference_update(bytes(row[0]) for row in rows)
    return left


def note_uses(db: Any, parameter: str = "?") -> None:
    """Fill the table of a store that has no rows yet; for a migration."""
    runs = db.execute("SELECT position, blobs FROM fact_run WHERE blobs IS NOT NULL")
    for position, offloaded in list(runs):
        for row in uses_of(position, offloaded):
            db.execute(f"INSERT INTO blob_use VALUES ({parameter}, {parameter})", row)
