"""The head: the segment that is being written, a preallocated memory-mapped file."""

from __future__ import annotations

import mmap
import os
import zlib
from pathlib import Path

from playhead_exporter.spool.places import FILE_MODE, remove_file, segment_name
from playhead_semconv.tape.frames import HEAD, MAGIC

PAGE_BYTES = mmap.PAGESIZE
_POPULATE = getattr(mmap, "MAP_POPULATE", 0)
_FRAME_HEAD_BYTES = HEAD.size


class Head:
    """A mapped file in the form of a tape: magic, header frame, frames, zeros.

    What is put here is in the page cache at once, so it outlives the process, and putting it is a
    copy: no system call. A frame's length and checksum are written after its payload; half a frame
    never looks like a whole one.
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
        """Make the file: at least ``size`` bytes, beginning with the frame ``header``.

        OSError if there is no room; nothing is left behind then.
        """
        self.number = number
        self.path = folder / segment_name(number, "head")
        self.size = -(-size // PAGE_BYTES) * PAGE_BYTES
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            os.posix_fallocate(fd, 0, self.size)
            self.map = mmap.mmap(fd, self.size, mmap.MAP_SHARED | _POPULATE)
        except OSError:
            os.unlink(self.path)
            raise
        finally:
            os.close(fd)
        start = len(MAGIC)
        self.map[:start] = MAGIC
        self.map[start : start + len(header)] = header
        self.first_frame = start + len(header)
        self.written = self.first_frame
        """Where the next frame goes; everything before it is whole."""
        self.copied = 0
        """Up to where it is on disk."""
        self.rolled = False
        """No more frames will come."""
        self.released = False
        """Delivered, no longer needed by anybody."""

    def put(self, payload: bytes) -> None:
        """Write one frame. The caller holds the spool's lock and has seen that it fits."""
        start = self.written
        data = start + _FRAME_HEAD_BYTES
        end = data + len(payload)
        self.map[data:end] = payload
        HEAD.pack_into(self.map, start, len(payload), zlib.crc32(payload))
        self.written = end

    def remove(self) -> None:
        """Delete the file. The mapping lives as long as somebody reads it."""
        remove_file(self.path)
