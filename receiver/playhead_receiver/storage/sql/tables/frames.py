"""The frames of bundles, each in its row, or several together in a block. Texts in them, by digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from playhead_core.errors import CorruptTape, PlayheadError
from playhead_core.facts import digest_of
from playhead_receiver.storage.content.compressed_frames import compress, decompress, open_block
from playhead_receiver.storage.content.texts import Texts, addresses_in, items_of
from playhead_receiver.storage.sql.tables.database import Db

_encode = msgspec.msgpack.Encoder().encode


def frames_at(db: Db, bundle: int) -> dict[int, bytes]:
    """Plain frames by number: that of ``bundle`` and those in the same block; empty if it is missing."""
    found: Any = db.execute(
        "SELECT bundle.data, block.data FROM bundle LEFT JOIN block ON block.id = bundle.block"
        " WHERE bundle.id = ?",
        (bundle,),
    ).get
    if found is None:
        return {}
    own, block = found
    if own is not None:
        return {bundle: decompress(own)}
    return {} if block is None else open_block(block)


def frames_of(db: Db, bundles: Sequence[int]) -> dict[int, bytes]:
    """As `frames_at`, for several bundles at once."""
    marks = ", ".join("?" * len(bundles))
    rows: Any = db.execute(f"SELECT id, data, block FROM bundle WHERE id IN ({marks})", bundles)
    found, blocks = dict[int, bytes](), set[int]()
    for id, data, block in rows:
        if data is not None:
            found[id] = decompress(data)
        elif block is not None:
            blocks.add(block)
    if blocks:
        marks = ", ".join("?" * len(blocks))
        rows = db.execute(f"SELECT data FROM block WHERE id IN ({marks})", sorted(blocks))
        for (data,) in rows:
            found |= open_block(data)
    return found


def frame_at(db: Db, bundle: int) -> bytes | None:
    """The plain frame of a bundle; None if it is missing."""
    return frames_at(db, bundle).get(bundle)


def readable_items(db: Db, bundle: int) -> list[Any] | None:
    """The items of a bundle's frame; None if it is damaged or missing."""
    try:
        plain = frame_at(db, bundle)
        if plain is None:
            return None
        items = items_of(plain)
        for item in items:
            addresses_in(item, bundle)
    except (CorruptTape, TypeError, IndexError):
        return None
    return items


def put_frame(db: Db, bundle: int, items: list[Any]) -> None:
    """Replace the frame of a bundle."""
    _part_block(db, bundle)
    db.execute("UPDATE bundle SET data = ? WHERE id = ?", (compress(_encode(items)), bundle))


def delete_frame(db: Db, bundle: int) -> None:
    """Delete a bundle and its frame."""
    _part_block(db, bundle)
    db.execute("DELETE FROM bundle WHERE id = ?", (bundle,))


def delete_damaged_frame(db: Db, bundle: int) -> None:
    """Delete a bundle whose frame cannot be read; also its block, if no other bundle lies in it."""
    block: Any = db.execute("SELECT block FROM bundle WHERE id = ?", (bundle,)).get
    db.execute("DELETE FROM bundle WHERE id = ?", (bundle,))
    if block is not None:
        db.execute(
            "DELETE FROM block WHERE id = ?"
            " AND NOT EXISTS (SELECT 1 FROM bundle WHERE bundle.block = ?)",
            (block, block),
        )


def _part_block(db: Db, bundle: int) -> None:
    """Dissolve a bundle's block: put all its frames back into their rows.

    A caller that changes one frame of a block usually changes most of them.
    """
    number: Any = db.execute("SELECT block FROM bundle WHERE id = ?", (bundle,)).get
    if number is None:
        return
    for id, plain in frames_at(db, bundle).items():
        db.execute("UPDATE bundle SET data = ?, block = NULL WHERE id = ?", (compress(plain), id))
    db.execute("DELETE FROM block WHERE id = ?", (number,))


def stored_text(db: Db, digest: bytes) -> int | None:
    """The address of the text with a digest; None if it is not stored, or differs from the digest."""
    found: Any = db.execute("SELECT address FROM text WHERE digest = ?", (digest,)).get
    if found is None:
        return None
    try:
        whole = Texts(lambda id: frames_at(db, id)).text(int(found))
    except PlayheadError:  # it has been deleted, or is damaged
        return None
    return int(found) if digest_of(whole)[: len(digest)] == digest else None
