"""Files that a program gives to a child process as stdout or stderr."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator


class GivenFiles:
    """The regular files of one child, by stream name."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int]] = {}

    def writes_to(self, stream: str, number: int, offset: int) -> None:
        """Note that a stream goes to a regular file, from ``offset`` on. ``number`` is closed here."""
        self._files[stream] = number, offset

    def tell(self, learned: Callable[[str, bytes, None, int], None]) -> None:
        """The child has ended: ``learned(stream, data, None, offset)`` for what it wrote to each."""
        for stream, (number, offset) in self._taken():
            try:
                end = os.lseek(number, 0, os.SEEK_CUR)
                if end > offset:
                    learned(f"{stream}.file", _between(number, offset, end), None, offset)
            finally:
                os.close(number)

    def write_again(self, pieces: Callable[[str], Iterable[tuple[int, bytes]]]) -> None:
        """Replay: the child has ended; write ``pieces(stream)`` to each, every piece at its offset."""
        for stream, (number, _) in self._taken():
            try:
                for offset, data in pieces(stream):
                    os.lseek(number, offset, os.SEEK_SET)
                    while data:
                        data = data[os.write(number, data) :]
            finally:
                os.close(number)

    def _taken(self) -> Iterator[tuple[str, tuple[int, int]]]:
        while self._files:
            stream = next(iter(self._files))
            yield stream, self._files.pop(stream)


def _between(number: int, start: int, end: int) -> bytes:
    try:
        return os.pread(number, end - start, start)
    except OSError:  # the file is open for writing only
        with open(f"/proc/self/fd/{number}", "rb") as file:
            file.seek(start)
            return file.read(end - start)
