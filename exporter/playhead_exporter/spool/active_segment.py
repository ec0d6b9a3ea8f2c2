"""The active segment: the one that is being written, as a preallocated memory-mapped file."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from playhead_core.process.own_descriptors import map_file, open_own, require_room
from playhead_core.tape.frames import MAGIC
from playhead_exporter.spool.folders import remove_file, segment_name

PAGE_BYTES = mmap.PAGESIZE
_POPULATE = getattr(mmap, "MAP_POPULATE", 0)


class ActiveSegment:
    """A mapped file in tape format: magic, header frame, frames, zeros.

    `Spool` writes the frames. A frame is in the page cache, so it survives the process.
    """

    __slots__ = (
        "copied",
        "first_frame",
        "map",
        "number",
        "path",
        "released",
        "rolled",
        "size",
        "written",
    )

    def __init__(self, folder: Path, number: int, size: int, header: bytes) -> None:
        """Create the file with at least ``size`` bytes; its first frame is ``header``.

        OSError if there is no room; no file is left in that case.
        """
        self.number = number
        self.path = folder / segment_name(number, "head")
        self.size = -(-size // PAGE_BYTES) * PAGE_BYTES
        require_room(self.size)
        with open_own(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL) as file:
            try:
                os.posix_fallocate(file.number, 0, self.size)
                self.map = map_file(file.number, self.size, mmap.MAP_SHARED | _POPULATE)
            except OSError:
                os.unlink(self.path)
                raise
        start = len(MAGIC)
        self.map[:start] = MAGIC
        self.map[start : start + len(header)] = header
        self.first_frame = start + len(header)
        self.written = self.first_frame
        """Offset of the next frame; everything before it is complete."""
        self.copied = 0
        """Offset up to which the active segment is copied to disk."""
        self.rolled = False
        """Whether no more frames will be written."""
        self.released = False
        """Whether the active segment is delivered and no longer needed."""

    def remove(self) -> None:
        """Delete the file. The mapping stays valid while it is read."""
        remove_file(self.path)


def _nothing() -> None: ...


class BackgroundThreads(msgspec.Struct, frozen=True):
    """Callbacks by which a spool wakes and asks the threads that empty it."""

    begin: Callable[[], None] = _nothing
    """Called when an instance writes its first fact, and again in a forked child."""
    wake_copier: Callable[[], None] = _nothing
    """Called when an active segment is full."""
    news: Callable[[], None] = _nothing
    """Called after the first append since `Spool.is_idle` was set, to wake sleeping threads."""
    after_append: Callable[[ActiveSegment, int], None] | None = None
    """Called, outside the lock, with the active segment and the offset behind the frame."""
    disk_stalled: Callable[[], str] = lambda: ""
    """Returns why the disk does not accept data at the moment; empty if it does."""
    await_room: Callable[[float], bool] = lambda timeout_s: False
    """Waits up to the given seconds for a free active segment; False if the copier does not run."""


NO_THREADS = BackgroundThreads()
"""For a spool that no thread empties."""
