"""Tombstones in the tables: one for each transaction that deletes runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playhead_core.errors import CorruptTape
from playhead_core.integrity.tombstones import Tombstone, changed_tombstones, sealed, tombstone_of
from playhead_receiver.storage.api.verification import Finding
from playhead_receiver.storage.sql.tables.database import Db


def lay(db: Db, tombstone: Tombstone) -> None:
    """Append a tombstone."""
    found: Any = db.execute("SELECT number, link FROM tombstone ORDER BY number DESC LIMIT 1").get
    number, before = found or (0, None)
    said, link = sealed(before, tombstone)
    db.execute("INSERT INTO tombstone VALUES (?, ?, ?)", (number + 1, said, link))


def tombstones(db: Db) -> Iterator[Tombstone]:
    """All readable tombstones, oldest first."""
    rows: Any = db.execute("SELECT said FROM tombstone ORDER BY number")
    for (said,) in rows:
        try:
            yield tombstone_of(said)
        except CorruptTape:
            continue  # `verify` reports it


def verify_tombstones(db: Db) -> Iterator[Finding]:
    """A finding for each tombstone that was changed."""
    rows: Any = db.execute("SELECT said, link FROM tombstone ORDER BY number")
    for number, problem in changed_tombstones(rows):
        yield Finding("tombstone", str(number), problem)
