"""Compares the stdin of a child process with the recorded stdin."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from playhead_core.facts import Part
from playhead_semconv import attributes as a


class Stdin:
    """The recorded input, compared with the input now."""

    def __init__(self, pieces: Sequence[Part]) -> None:
        """``pieces``: what the program sent then."""
        self._recorded = b"".join(piece.data.inline or b"" for piece in pieces)
        self.closed = any(a.PLAYHEAD_PROCESS_STREAM in piece.attributes for piece in pieces)
        """Whether the program closed stdin in the recording."""
        self._sent = 0

    def room(self) -> int:
        """Bytes of the recorded input that have not been sent yet."""
        return len(self._recorded) - self._sent

    def take(self, data: bytes) -> str:
        """Take more input; the first difference, or empty where there is none."""
        expected = self._recorded[self._sent : self._sent + len(data)]
        if data == expected:
            self._sent += len(data)
            return ""
        pairs = itertools.zip_longest(expected, data)
        at = next(place for place, (one, other) in enumerate(pairs) if one != other)
        return self._said(self._sent + at, expected[at:], data[at:])

    def end(self) -> str:
        """Take the close of stdin; the difference, or empty where there is none."""
        return self._said(self._sent, self._recorded[self._sent :], b"") if self.room() > 0 else ""

    def at_exit(self) -> str:
        """Take the end of the process; the difference, or empty where there is none."""
        return self.end()

    @staticmethod
    def _said(place: int, tape: bytes, now: bytes) -> str:
        shown = [repr(side[:40])[1:] if side else "(end)" for side in (tape, now)]
        return f"at byte {place}: tape {shown[0]}, now {shown[1]}"
