"""The cursor: how far the tape of an instance is delivered."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from playhead_core.process.own_descriptors import read_file, write_file
from playhead_exporter.spool.folders import CURSOR


class Position(NamedTuple):
    """A position on a tape: number of a segment, and offset of the next frame in it."""

    segment: int
    offset: int


START = Position(0, 0)


def load_cursor(home: Path) -> Position:
    """Read the cursor in ``home``; the start of the tape if there is no valid one."""
    try:
        segment, offset = read_file(home / CURSOR).split()
        return Position(int(segment), int(offset))
    except (OSError, ValueError):
        return START


def store_cursor(home: Path, position: Position) -> bool:
    """Write the cursor atomically. False if the disk does not take it.

    In that case deliveries since the last cursor are repeated after a restart, which is harmless.
    """
    path = home / CURSOR
    draft = path.with_suffix(".draft")
    try:
        write_file(draft, f"{position.segment} {position.offset}\n".encode("ascii"))
        os.replace(draft, path)
    except OSError:
        return False
    return True
