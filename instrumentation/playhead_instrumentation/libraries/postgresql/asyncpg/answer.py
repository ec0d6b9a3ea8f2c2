"""Find the end of a response of a PostgreSQL server, and what later requests need of it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

READ: Final = b"EGHSTZnt"
"""Kinds of messages that are read as a whole."""

ROW: Final = ord("D")


class Answer:
    """Follows the response of a server to one request."""

    def __init__(self, *, prepares: bool, endless: bool = False) -> None:
        """``prepares``: it ends with the shape of the rows. ``endless``: the next request ends it."""
        self.over = False
        """Whether nothing more is to come."""
        self.prepared = False
        """Whether a statement has been prepared by it."""
        self.rows = 0
        self.failure = ""
        """SQLSTATE of the first error; empty: there is none."""
        self.types: Sequence[int] | None = None
        """Types of the parameters of a statement that is prepared."""
        self.state = b""
        """The state of the transaction, if the server has said it."""
        self._prepares = prepares
        self.endless = endless
        """Whether only the next request ends it."""
        self._rest: bytes = b""
        """The beginning of a message."""
        self._skips = 0
        """Bytes of a message that are still to come and are not looked at."""

    def synchronised(self) -> None:
        """Note that the client asked for a sync: the server will say that it is ready."""
        self._prepares = False

    def take(self, data: bytes) -> int:
        """Take the next bytes. Return how many belong to the response: all, unless it ends."""
        skipped = min(self._skips, len(data))
        self._skips -= skipped
        before = len(self._rest)
        data = self._rest + data[skipped:]
        place, size = 0, len(data)
        while not self.over and place + 5 <= size:
            kind, end = data[place], place + 1 + int.from_bytes(data[place + 1 : place + 5])
            if kind == ROW:
                self.rows += 1
            elif kind in READ:
                if end > size:
                    break
                self._read(data[place : place + 1], data[place + 5 : end])
            place = end
        self._skips += max(0, place - size)
        if self.over:
            self._rest = b""
            return skipped + place - before
        self._rest = data[place:]
        return skipped + size - before

    def _read(self, kind: bytes, body: bytes) -> None:
        if kind == b"E":
            self.failure = self.failure or _sqlstate(body)
            self._prepares = False  # the client asks for the end of it
        elif kind == b"t":
            (count,) = struct.unpack_from("!H", body)
            self.types = struct.unpack_from(f"!{count}I", body, 2)
        elif kind in (b"T", b"n"):
            self.over = self.prepared = self._prepares
        elif kind == b"Z":
            self.state = body
            self.over = not self.endless


def _sqlstate(body: bytes) -> str:
    for field in body.split(b"\0"):
        if field[:1] == b"C":
            return field[1:].decode("ascii", "replace")
    return ""
