"""Files that a program gives to a child process for its stdout or stderr: what the child wrote there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_instrumentation.host.process.exchange import Child


class GivenFiles:
    """The regular files of one child, each by the name of its stream."""

    def __init__(self, child: Child) -> None:
        self._child: Final = child
        self._files: dict[str, tuple[int, int]] = {}

    def writes_to(self, stream: str, number: int, offset: int) -> None:
        """A stream of it goes to a regular file, from ``offset`` on. ``number`` is ours to close."""
        self._files[stream] = number, offset

    def tell(self) -> None:
        """It has ended: put on the tape what it wrote."""
        for stream, (number, offset) in self._taken():
            try:
                end = os.lseek(number, 0, os.SEEK_CUR)
                if end > offset:
                    data = _between(number, offset, end)
                    self._child.learned(f"{stream}.file", data, None, offset)
            finally:
                os.close(number)

    def write_again(self) -> None:
        """At replay: it has ended, and what it wrote is there."""
        played = self._child.played
        assert played is not None
        for stream, (number, _) in self._taken():
            try:
                while (index := self._child.next((f"{stream}.file",))[0]) is not None:
                    at = played.exchange.parts[index].attributes
                    os.lseek(number, int(at.get(a.PLAYHEAD_PROCESS_OFFSET, 0)), os.SEEK_SET)
                    data = self._child.took(index)
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
    except OSError:  # open for writing only
        with open(f"/proc/self/fd/{number}", "rb") as file:
            file.seek(start)
            return file.read(end - start)
