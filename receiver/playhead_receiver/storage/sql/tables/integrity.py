"""Hash chains of process instances, and tombstones of deleted runs, in the tables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from playhead_core.errors import CorruptTape
from playhead_core.integrity import Link, LinkStatement, What, first_link, next_link, statement_of
from playhead_core.integrity.chain import pieces
from playhead_core.integrity.number_ranges import merged, outside
from playhead_core.integrity.tombstones import Tombstone, changed_tombstones, sealed, tombstone_of
from playhead_receiver.storage.api.maintenance import Finding
from playhead_receiver.storage.sql.tables.database import Db


def links_of(db: Db, row: int, instance: bytes) -> Iterator[Link]:
    """The chain of an instance, given by its row, first link first."""
    rows: Any = db.execute(
        "SELECT said, digest, digests, link FROM link WHERE instance = ? ORDER BY number", (row,)
    )
    for said, digest, digests, link in rows:
        yield Link(instance, said, digest, link, digests)


def promised(db: Db, row: int) -> list[tuple[int, int]]:
    """Ranges of numbers in links that were imported before their facts arrived."""
    rows: Any = db.execute(
        "SELECT said FROM link WHERE instance = ? AND brought ORDER BY number", (row,)
    )
    found: list[tuple[int, int]] = []
    for (said,) in list(rows):
        try:
            about = statement_of(Link(b"", said, b"", b""))
        except CorruptTape:
            continue  # `verify` reports it
        if about.what == What.CAME:
            found += about.ranges
    return merged(found)


class ChainEntry(NamedTuple):
    """A statement about facts of an instance."""

    what: What
    ranges: Sequence[tuple[int, int]]
    digests: bytes = b""
    by: str = ""
    """Who did it."""


def add_link(db: Db, row: int, entry: ChainEntry) -> None:
    """Append a statement to the chain of an instance."""
    found: Any = db.execute(
        "SELECT instance.instance, number, link FROM instance LEFT JOIN link"
        " ON link.instance = instance.id WHERE instance.id = ? ORDER BY number DESC LIMIT 1",
        (row,),
    ).get
    if found is None:
        return
    instance, number, before = found
    number, before = (-1, first_link(instance)) if number is None else (number, before)
    now_ns = time.time_ns()
    for some, their in pieces(entry.what, entry.ranges, entry.digests):
        link = next_link(before, instance, LinkStatement(entry.what, some, now_ns, entry.by), their)
        number, before = number + 1, link.link
        db.execute(
            "INSERT INTO link VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row, number, False, link.said, link.digest, link.link, their),
        )


def drop_aged_digests(db: Db, row: int) -> None:
    """Delete the digests of links whose facts have all aged out: nothing is compared with them any more.

    The links stay, and so does the chain.
    """
    aged: Any = db.execute("SELECT first, last FROM aged WHERE instance = ?", (row,))
    ranges = merged((first, last) for first, last in aged)
    links: Any = db.execute(
        "SELECT number, said FROM link WHERE instance = ? AND length(digests) > 0", (row,)
    )
    for number, said in list(links):
        try:
            about = statement_of(Link(b"", said, b"", b""))
        except CorruptTape:
            continue  # `verify` reports it
        if not any(True for first, last in about.ranges for _ in outside(first, last, ranges)):
            db.execute(
                "UPDATE link SET digests = ? WHERE instance = ? AND number = ?", (b"", row, number)
            )


def not_chained(db: Db) -> int:
    """How many instances have facts that were stored before chains existed."""
    rows: Any = db.execute("SELECT said FROM link WHERE number = 0")
    return sum(_what(said) == What.BEFORE for (said,) in rows)


def _what(said: bytes) -> str:
    try:
        return statement_of(Link(b"", said, b"", b"")).what
    except CorruptTape:  # `verify` reports it
        return ""


def note_unchained(db: Db) -> None:
    """Begin a chain for each instance: its first link says that the facts are older than chains."""
    for table, what in (("fact_range", What.BEFORE), ("aged", What.AGED)):
        ranges: dict[int, list[tuple[int, int]]] = {}
        rows: Any = db.execute(f"SELECT instance, first, last FROM {table} ORDER BY instance, first")
        for row, first, last in rows:
            ranges.setdefault(row, []).append((first, last))
        for row, some in ranges.items():
            add_link(db, row, ChainEntry(what, some))


def add_tombstone(db: Db, tombstone: Tombstone) -> None:
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
