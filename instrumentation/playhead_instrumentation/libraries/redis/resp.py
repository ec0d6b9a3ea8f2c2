"""Parse the protocol of Redis: commands that a client packs, and the ends of replies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

BULKS: Final = b"$!="
LISTS: Final = b"*~>%|"


def commands(data: bytes) -> list[list[bytes]]:
    """Return the commands in ``data``, each the list of its words. ValueError if it is none.

    >>> commands(b"*2\\r\\n$3\\r\\nGET\\r\\n$1\\r\\nk\\r\\n")
    [[b'GET', b'k']]
    """
    found: list[list[bytes]] = []
    place = 0
    while place < len(data):
        count, place = _number(data, place, b"*")
        words: list[bytes] = []
        for _ in range(count):
            size, place = _number(data, place, b"$")
            words.append(data[place : place + size])
            place += size + 2
        found.append(words)
    return found


def _number(data: bytes, place: int, kind: bytes) -> tuple[int, int]:
    end = data.index(b"\r\n", place)
    if data[place : place + 1] != kind:
        raise ValueError("no command")
    return int(data[place + 1 : end]), end + 2


class Replies:
    """Follows what a server says until all awaited replies have come. Pushed messages are no replies."""

    def __init__(self, awaited: int) -> None:
        self.awaited = awaited
        """How many replies are still to come."""
        self.failure = b""
        """The first reply that is an error, without its mark; empty: none is."""
        self._rest = b""
        self._skips = 0
        """Bytes of a text that are still to come."""
        self._open: list[int] = []
        """Of the lists that are open, outermost first: how many elements are still to come."""
        self._apart = 0
        """How many of the open lists are no reply: a pushed message, attributes of a reply."""

    @property
    def over(self) -> bool:
        """Whether nothing more is to come."""
        return self.awaited <= 0

    def feed(self, data: bytes) -> bool:
        """Take the next bytes. Return whether nothing more is to come."""
        for line in self._lines(data):
            self._line(line)
        return self.over

    def _lines(self, data: bytes) -> Iterator[bytes]:
        data = self._rest + data
        place = 0
        while True:
            if self._skips:
                skipped = min(self._skips, len(data) - place)
                place += skipped
                self._skips -= skipped
                if self._skips:
                    break
                self._one()
            end = data.find(b"\r\n", place)
            if end < 0:
                break
            yield data[place:end]
            place = end + 2
        self._rest = data[place:]

    def _line(self, line: bytes) -> None:
        kind, size = line[:1], _size(line)
        if kind in (b"-", b"!") and not self._open and not self.failure:
            self.failure = line[1:] or b"ERR"
        if kind in BULKS and size >= 0:
            self._skips = size + 2
        elif kind in LISTS and size > 0:
            if kind in b">|" and not self._open:
                self._apart += 1
            self._open.append(size * 2 if kind in b"%|" else size)
        elif kind not in (b"|", b">"):
            self._one()

    def _one(self) -> None:
        """An element, or a whole reply, is complete."""
        while self._open:
            self._open[-1] -= 1
            if self._open[-1]:
                return
            self._open.pop()
        if self._apart:
            self._apart = 0
        else:
            self.awaited -= 1


def _size(line: bytes) -> int:
    try:
        return int(line[1:])
    except ValueError:
        return 0
