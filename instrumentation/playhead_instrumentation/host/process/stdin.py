"""What a child process is told on its stdin, against what it was told when recorded."""

from __future__ import annotations

import itertools

from playhead_instrumentation.driver.verdict import Played
from playhead_semconv import attributes as a


class Stdin:
    """What was sent when recorded, against what is sent now."""

    def __init__(self, played: Played | None) -> None:
        pieces = played.exchange.sent if played is not None else []
        self._recorded = b"".join(piece.data.inline or b"" for piece in pieces)
        self.closed = any(a.PLAYHEAD_PROCESS_STREAM in piece.attributes for piece in pieces)
        """Whether the program closed it."""
        self._sent = 0

    def room(self) -> int:
        """How many bytes more were sent when recorded."""
        return len(self._recorded) - self._sent

    def take(self, data: bytes) -> str:
        """More is sent; where it differs, and how; empty: it does not."""
        expected = self._recorded[self._sent : self._sent + len(data)]
        if data == expected:
            self._sent += len(data)
            return ""
        pairs = itertools.zip_longest(expected, data)
        at = next(place for place, (one, other) in enumerate(pairs) if one != other)
        return self._said(self._sent + at, expected[at:], data[at:])

    def end(self) -> str:
        """It is closed now."""
        return self._said(self._sent, self._recorded[self._sent :], b"") if self.room() > 0 else ""

    def at_exit(self) -> str:
        """The process ends."""
        return self.end()

    @staticmethod
    def _said(place: int, tape: bytes, now: bytes) -> str:
        shown = [repr(side[:40])[1:] if side else "(end)" for side in (tape, now)]
        return f"at byte {place}: tape {shown[0]}, now {shown[1]}"
