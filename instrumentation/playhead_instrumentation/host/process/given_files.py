"""Files that a program gives to a child process as stdout or stderr."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from playhead_instrumentation.driver.verdict import Played
from playhead_semconv import attributes as a
from playhead_semconv.facts import Delivery


class Writer(Protocol):
    """The exchange of a child, to which the files report what the child wrote."""

    @property
    def played(self) -> Played | None:
        """The recording that answers; None while recording."""
        ...

    def learned(self, stream: str, data: bytes, at: Delivery | None, offset: int | None = None) -> None:
        """Put ``data`` of a stream on the tape, at ``offset`` in its file."""
        ...

    def next(self, streams: Iterable[str]) -> tuple[int | None, str]:
        """Replay: index of the next part of these streams, and its stream."""
        ...

    def took(self, index: int, at: Delivery | None = None) -> bytes:
        """Replay: deliver a part of the recording to the program; its bytes."""
        ...


class GivenFiles:
    """The regular files of one child, by stream name."""

    def __init__(self, child: Writer) -> None:
        self._child: Final[Writer] = child
        self._files: dict[str, tuple[int, int]] = {}

    def writes_to(self, stream: str, number: int, offset: int) -> None:
        """Note that a stream goes to a regular file, from ``offset`` on. ``number`` is closed here."""
        self._files[stream] = number, offset

    def tell(self) -> None:
        """The child has ended: put on the tape what it wrote."""
        for stream, (number, offset) in self._taken():
            try:
                end = os.lseek(number, 0, os.SEEK_CUR)
                if end > offset:
                    data = _between(number, offset, end)
                    self._child.learned(f"{stream}.file", data, None, offset)
            finally:
                os.close(number)

    def write_again(self) -> None:
        """Replay: the child has ended; write what it wrote to the files."""
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
    except OSError:  # the file is open for writing only
        with open(f"/proc/self/fd/{number}", "rb") as file:
            file.seek(start)
            return file.read(end - start)
