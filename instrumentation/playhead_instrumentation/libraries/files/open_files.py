"""Reading an open file by its descriptor, without moving its position."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from typing import Final

import blake3

from playhead_instrumentation.libraries.files.contents import CHUNK_BYTES, again

_os_close: Final = os.close


def bytes_of(fd: int, path: str, start: int, limit_bytes: int) -> bytes | None:
    """The content of an open file from ``start`` on; None where it is longer than the limit."""
    with _readable(fd, path) as reading:
        pieces: list[bytes] = []
        at = start
        while at - start <= limit_bytes:
            try:
                piece = os.pread(reading, CHUNK_BYTES, at)
            except BlockingIOError:
                break
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            at += len(piece)
    return None


def digest_of_file(fd: int, path: str) -> bytes:
    """The BLAKE3 digest of an open file."""
    hasher = blake3.blake3()
    with _readable(fd, path) as reading:
        at = 0
        while piece := os.pread(reading, CHUNK_BYTES, at):
            hasher.update(piece)
            at += len(piece)
    return hasher.digest()


@contextlib.contextmanager
def _readable(fd: int, path: str) -> Generator[int]:
    """A readable descriptor of the same file, even where ``fd`` is open for writing only."""
    try:
        os.pread(fd, 1, 0)
    except OSError:
        pass
    else:
        yield fd
        return
    reading = again(fd, path)
    try:
        yield reading
    finally:
        _os_close(reading)
