"""Joins the frames of finished runs into blocks, so that what small requests repeat is stored once.

Numbers of bundles and places in them do not change, so references stay valid. A block replaces its
frames in one transaction.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import msgspec

from playhead_core.errors import CorruptTape
from playhead_receiver.storage.api.store import OF_ONE_RUN
from playhead_receiver.storage.content.compressed_frames import (
    BLOCK_BYTES,
    decompress,
    open_block,
    pack_block,
)
from playhead_receiver.storage.sql.tables.database import Db

QUIET_S = 60.0
"""A run that received nothing for this many seconds counts as finished, whatever its status."""
LEAST_FRAMES = 4
"""A run with fewer loose frames is not compacted."""
AT_ONCE_BYTES = 8 * BLOCK_BYTES
"""Plain bytes that one transaction joins."""


class BlockDraft(msgspec.Struct, frozen=True):
    """A block to be written."""

    trace_id: bytes
    frames: dict[int, bytes]
    """The compressed frames that it replaces, as stored, by the numbers of their bundles."""
    data: bytes


def drafts(db: Db, quiet_s: float) -> list[BlockDraft]:
    """Blocks for some of the finished runs, the longest quiet first; nothing is written yet."""
    before_ns = time.time_ns() - round(quiet_s * 1e9)
    runs: Any = db.execute(
        f"SELECT trace_id FROM run WHERE loose >= {LEAST_FRAMES} AND arrived_ns < ? ORDER BY arrived_ns",
        (before_ns,),
    )
    made: list[BlockDraft] = []
    size = 0
    for (trace_id,) in runs:
        with suppress(*OF_ONE_RUN):  # a damaged run stays as it is; `verify` reports it
            of_run, held = _drafts_of(db, trace_id)
            made += of_run
            size += held
        if size >= AT_ONCE_BYTES:
            break
    return made


def _drafts_of(db: Db, trace_id: bytes) -> tuple[list[BlockDraft], int]:
    """The blocks of a run, and how many plain bytes they hold. `CorruptTape` if a frame is damaged."""
    made: list[BlockDraft] = []
    rows: Any = db.execute(
        "SELECT id, data FROM bundle WHERE trace_id = ? AND data IS NOT NULL ORDER BY id", (trace_id,)
    )
    kept, plain, size, held = dict[int, bytes](), dict[int, bytes](), 0, 0
    for id, data in rows:
        kept[id], plain[id] = data, decompress(data)
        held += len(plain[id])
        if held >= BLOCK_BYTES:
            made.append(_draft(trace_id, kept, plain))
            kept, plain, size, held = {}, {}, size + held, 0
    if plain:
        made.append(_draft(trace_id, kept, plain))
    return made, size + held


def _draft(trace_id: bytes, kept: dict[int, bytes], plain: dict[int, bytes]) -> BlockDraft:
    data = pack_block(plain)
    if open_block(data) != plain:
        raise CorruptTape(f"frames of {trace_id.hex()} differ after they were packed into a block")
    return BlockDraft(trace_id, kept, data)


def write(db: Db, made: list[BlockDraft]) -> None:
    """Write blocks, except those whose frames have changed since. For the writer."""
    for draft in made:
        marks = "?" + ", ?" * (len(draft.frames) - 1)
        rows: Any = db.execute(f"SELECT id, data FROM bundle WHERE id IN ({marks})", tuple(draft.frames))
        if dict(rows) == draft.frames:
            number: Any = db.execute(
                "INSERT INTO block(data) VALUES (?) RETURNING id", (draft.data,)
            ).get
            # Delete and insert again: rows that only got shorter would leave their pages half empty.
            db.execute(f"DELETE FROM bundle WHERE id IN ({marks})", tuple(draft.frames))
            for id in draft.frames:
                db.execute("INSERT INTO bundle VALUES (?, ?, NULL, ?)", (id, draft.trace_id, number))
    for trace_id in {draft.trace_id for draft in made}:
        db.execute(
            "UPDATE run SET loose = (SELECT count(*) FROM bundle WHERE bundle.trace_id = run.trace_id"
            " AND data IS NOT NULL) WHERE trace_id = ?",
            (trace_id,),
        )
