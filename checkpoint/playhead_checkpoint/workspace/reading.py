"""Reads files of a running program without disturbing it.

Closing any descriptor of a file releases all POSIX locks of the process on that file, including the
program's own (SQLite relies on them). So a database stays open here, and so does a locked file until the
lock is gone.
"""

from __future__ import annotations

import os
import stat
from typing import Final, TypeAlias

Signature: TypeAlias = tuple[int, int, int, int]
"""Modification and change time in ns, size, inode. Equal signatures: the file was not written."""

DATABASE: Final = b"SQLite format 3\0"
_TRIES: Final = 3
_CHUNK_BYTES: Final = 1 << 20


class Changing(Exception):
    """A file changed during every attempt to read it."""


class FileReader:
    """Reads files below a folder. Not thread-safe."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], int] = {}
        """Open descriptors by device and inode."""
        self._duplicates: list[int] = []
        """Additional descriptors of the same files."""

    def read(self, path: str) -> tuple[bytes, os.stat_result]:
        """Return the content of a regular file and its status. `OSError`, `Changing`."""
        seen = os.lstat(path)
        if not stat.S_ISREG(seen.st_mode):
            raise OSError(f"{path} is no file")
        fd = self._open.get((seen.st_dev, seen.st_ino), -1)
        if fd < 0:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            opened = os.fstat(fd)
            self._open.setdefault((opened.st_dev, opened.st_ino), fd)
            if self._open[opened.st_dev, opened.st_ino] != fd:
                self._duplicates.append(fd)  # replaced between the two calls by one that stays open
        found = os.fstat(fd)
        try:
            if not stat.S_ISREG(found.st_mode):
                raise OSError(f"{path} is no file")
            for _ in range(_TRIES):
                data = _content(fd)
                after = os.fstat(fd)
                if signature_of(after) == signature_of(found):
                    return data, after
                found = after
            raise Changing(path)
        finally:
            self._close_unlocked()

    def _close_unlocked(self) -> None:
        """Close the descriptors of files that are neither locked nor databases."""
        locked = _locked_by_us()
        for place, fd in list(self._open.items()):
            if place[1] not in locked and not _is_database(fd):
                del self._open[place]
                os.close(fd)


def signature_of(found: os.stat_result) -> Signature:
    """Return values that change if a file is written, replaced or renamed."""
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _content(fd: int) -> bytes:
    pieces: list[bytes] = []
    at = 0
    while piece := os.pread(fd, _CHUNK_BYTES, at):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def _is_database(fd: int) -> bool:
    try:
        return os.pread(fd, len(DATABASE), 0) == DATABASE
    except OSError:
        return False


def _locked_by_us() -> set[int]:
    """Return inodes on which this process has a POSIX lock; empty if the system does not tell."""
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as said:
            lines = [line.split() for line in said]
    except OSError:
        return set()
    own = str(os.getpid())
    found: set[int] = set()
    for words in lines:
        # 1: POSIX ADVISORY WRITE 4242 08:02:1234567 0 EOF
        if "POSIX" in words and own in words and words[-3].count(":") == 2:
            found.add(int(words[-3].rpartition(":")[2]))
    return found
