"""Deletes facts that have aged out from the tables, inside the writer's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from playhead_core.errors import CorruptTape
from playhead_core.facts import Fact
from playhead_core.integrity import What
from playhead_core.integrity.number_ranges import merged
from playhead_core.reports import NAMES
from playhead_receiver.storage.runs.request_index import index_entries, needs_of
from playhead_receiver.storage.sql.history.selecting import FactFrame
from playhead_receiver.storage.sql.search.searcher import INDEXED_FACTS
from playhead_receiver.storage.sql.tables.blob_uses import forget_uses, uses_of
from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.sql.tables.integrity import ChainEntry, add_link, drop_aged_digests
from playhead_receiver.storage.writing.fact_rows import part_digest
from playhead_receiver.storage.writing.prepare import bare_run, blob_digests, pack_bare
from playhead_semconv import events as e

AT_ONCE = 256


class Dropped(msgspec.Struct):
    """What a transaction deleted."""

    facts: int = 0
    blobs: set[bytes] = set()
    """Blobs that these facts needed; other facts may need them too."""
    left: list[int] = []
    """First numbers of frames in which something may age out later."""


def drop(db: Db, instance: int, frames: Sequence[FactFrame], measured_to: int) -> Dropped:
    """Delete the facts of some frames that have aged out. Frames that have changed since are skipped.

    ``measured_to``: the position up to which it is known which bodies are extended by others.
    """
    done = Dropped(blobs=set(), left=[])
    since = _carried_since(db, instance, measured_to)
    for frame in frames:
        found: Any = db.execute(
            "SELECT data FROM fact_run WHERE position = ? AND instance = ?", (frame.position, instance)
        ).get
        if found is None:
            continue
        kept, aged = frame.kept, frame.aged
        if found != frame.data or (since and not since.isdisjoint(_carried_by(aged))):
            done.left.append(frame.first)
            continue
        if aged:
            _drop_one(db, instance, frame, done)
        if kept and frame.waits:
            done.left.append(kept[0].seq)
    if done.facts:
        db.execute("UPDATE counter SET bundle = bundle + 1")  # see `StoreVersion`
        drop_aged_digests(db, instance)
    return done


def _drop_one(db: Db, instance: int, frame: FactFrame, done: Dropped) -> None:
    kept, aged, used = frame.kept, frame.aged, blob_digests(frame.blobs)
    done.facts += len(aged)
    done.blobs |= used
    db.execute("DELETE FROM fact_run WHERE position = ?", (frame.position,))
    forget_uses(db, frame.position, used)
    _delete_index_entries(db, instance, frame)
    if kept:
        _put(db, instance, frame, {fact.seq for fact in kept}, kept)
    told, parts, exchanges = (
        list[Any](),
        list[Any](),
        {str(one.exchange) for one in aged if one.exchange},
    )
    for fact in aged:
        digest = part_digest(fact) if fact.name == e.PLAYHEAD_BLOB else None
        if digest is not None:
            parts.append((instance, digest, fact.seq))
        elif fact.body is not None and fact.body.tells:
            told.append((instance, fact.body.digest, fact.seq))
        if fact.name in NAMES or (fact.name in INDEXED_FACTS and fact.body is not None):
            row = frame.position - frame.last + fact.seq
            db.execute("INSERT INTO unsearch VALUES (?, ?)", (row, True))
    for table, rows in (("content", told), ("blob_part", parts)):
        for row in rows:
            db.execute(f"DELETE FROM {table} WHERE instance = ? AND digest = ? AND seq = ?", row)
    for id in exchanges - {str(fact.exchange) for fact in kept}:
        db.execute(
            "DELETE FROM exchange WHERE instance = ? AND id = ? AND last <= ?",
            (instance, id, frame.last),
        )
    numbers = [fact.seq for fact in aged]
    _record_aged(db, instance, numbers)
    ranges = merged((number, number) for number in numbers)
    add_link(db, instance, ChainEntry(What.AGED, ranges))


def _put(db: Db, instance: int, frame: FactFrame, stays: set[int], kept: list[Fact]) -> None:
    """Write what is left of a frame."""
    first, last = kept[0].seq, kept[-1].seq
    position = frame.position - frame.last + last
    data, blobs = pack_bare([fact for fact in bare_run(frame.data) if fact.seq in stays], frame.blobs)
    db.execute(
        "INSERT INTO fact_run VALUES (?, ?, ?, ?, ?, ?)",
        (position, instance, first, last, data, blobs),
    )
    for use in uses_of(position, blobs):
        db.execute("INSERT INTO blob_use VALUES (?, ?)", use)
    for key, above in index_entries(kept).items():
        db.execute("INSERT INTO strand VALUES (?, ?, ?, ?)", (instance, key, first, above))


def _record_aged(db: Db, instance: int, numbers: list[int]) -> None:
    """Record that these numbers have aged out, joined with adjacent ranges."""
    low, high = numbers[0], numbers[-1]
    before: Any = db.execute(
        "SELECT max(first) FROM aged WHERE instance = ? AND first < ?", (instance, low)
    ).get
    rows: Any = db.execute(
        "SELECT first, last FROM aged WHERE instance = ? AND first >= ? AND first <= ?",
        (instance, low if before is None else before, high + 1),
    )
    there = {(first, last) for first, last in rows}
    wanted = merged([*there, *((number, number) for number in numbers)])
    for first, _ in there.difference(wanted):
        db.execute("DELETE FROM aged WHERE instance = ? AND first = ?", (instance, first))
    for first, last in wanted:
        if (first, last) not in there:
            db.execute("INSERT INTO aged VALUES (?, ?, ?)", (instance, first, last))


def _carried_since(db: Db, instance: int, position: int) -> set[bytes]:
    """Digests of contents that arrived, or were extended, after a position."""
    found: set[bytes] = set()
    rows: Any = db.execute(
        "SELECT data FROM fact_run WHERE position > ? AND instance = ?", (position, instance)
    )
    for (data,) in rows:
        try:
            facts = bare_run(data)
        except CorruptTape:
            continue
        for fact in facts:
            found |= needs_of(fact.body)
        found |= _carried_by(facts)
    return found


def _carried_by(facts: Iterable[Fact]) -> set[bytes]:
    found: set[bytes] = set()
    for fact in facts:
        if fact.name == e.PLAYHEAD_BLOB:
            found.add(part_digest(fact) or b"")
        elif fact.body is not None and fact.body.digest:
            found.add(fact.body.digest)
    return found - {b""}


def _delete_index_entries(db: Db, instance: int, frame: FactFrame) -> None:
    entries = list(index_entries(frame.facts))
    for at in range(0, len(entries), AT_ONCE):
        some = entries[at : at + AT_ONCE]
        db.execute(
            "DELETE FROM strand WHERE instance = ? AND first = ? AND strand IN"
            f" (?{', ?' * (len(some) - 1)})",
            (instance, frame.first, *some),
        )
