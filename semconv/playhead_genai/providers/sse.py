"""Server-sent events: an incremental parser for bytes that arrive in arbitrary pieces.

Follows the WHATWG rules: lines end in LF, CR LF or CR; a line that starts with a colon is a comment; an
empty line ends an event; several ``data`` lines are joined by LF; one byte order mark at the start is
skipped. An event without data is not an event.
"""

from __future__ import annotations

import msgspec

_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(msgspec.Struct, frozen=True):
    """One event. ``name`` is empty if the stream gave none; ``data`` is not decoded."""

    name: str
    data: bytes


class SseParser:
    """Feed it bytes; it returns the events that are complete. ``close`` returns what is left."""

    def __init__(self) -> None:
        self._rest: bytes = b""
        self._at_start = True
        self._after_cr = False

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Return the events that ``data`` completes."""
        if self._at_start:
            data, self._rest = self._rest + data, b""
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._rest = data
                return []
            data = data.removeprefix(_BOM)
            self._at_start = False
        if self._after_cr and data:
            data = data.removeprefix(b"\n")  # the line ended with the CR
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        blocks, separator, self._rest = (self._rest + data).rpartition(b"\n\n")
        if not separator:
            return []
        return [event for block in blocks.split(b"\n\n") if (event := _event(block)) is not None]

    def close(self) -> ServerSentEvent | None:
        """Return the event that no empty line ended, as far as it was received; None: there is none."""
        rest, self._rest = self._rest, b""
        return _event(rest)


def _event(block: bytes) -> ServerSentEvent | None:
    name = ""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ").decode("utf-8", "replace")
    joined = b"\n".join(data)
    return ServerSentEvent(name, joined) if joined else None
