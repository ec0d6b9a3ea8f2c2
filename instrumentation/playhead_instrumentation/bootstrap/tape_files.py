"""Reads the tapes for a replay from files."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from playhead_core.errors import TapeError
from playhead_core.facts import Fact
from playhead_core.process.own_descriptors import map_file
from playhead_core.tape.frames import scan_whole
from playhead_core.tape.indexed_tapes import IndexedTape, MemoryTape, gather
from playhead_semconv import events as e


def load(path: Path) -> IndexedTape:
    """The tape of a file. Raises `TapeError` where it is incomplete or has no content.

    The file is memory-mapped: only the parts in use are in memory.
    """
    with open(path, "rb") as file:
        size = path.stat().st_size
        mapped = map_file(file.fileno(), size) if size else None
    data = memoryview(mapped or b"")
    tape, *_ = gather(data, scan_whole(data, path.name)).tapes or [MemoryTape(())]
    tape.require_whole()
    if any(one.body is not None and one.body.size and not one.body.digest for one in _requests(tape)):
        raise TapeError("the tape holds no content: it was recorded with content=metadata")
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)  # drop the pages that were read to build the index
    return tape


def load_several(path: Path) -> list[IndexedTape]:
    """The tapes in a file with several processes."""
    data = path.read_bytes()
    return gather(data, scan_whole(data, path.name)).tapes


def _requests(tape: IndexedTape) -> Iterator[Fact]:
    return tape.named(e.PLAYHEAD_EXCHANGE_REQUEST)
