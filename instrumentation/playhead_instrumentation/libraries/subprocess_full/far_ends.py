"""What a replay needs of a child's pipes: their other ends, and its recorded stdin.

No child exists in a replay, so the replay holds the ends that the child would hold.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Final

from playhead_core.facts import Part
from playhead_core.process.own_descriptors import OwnDescriptor
from playhead_semconv import attributes as a


class FarEnds:
    """Descriptors by stream name. They make pipes readable; the data itself comes from the tape."""

    def __init__(self, drain: Callable[[str], None]) -> None:
        """``drain``: makes the program's end of a stream unreadable again."""
        self._drain: Final = drain
        self._held: dict[str, OwnDescriptor] = {}
        self._offered: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._held)

    def hold(self, stream: str, number: int) -> None:
        """Take ``number`` as the other end of a stream. It is closed here."""
        self._held[stream] = OwnDescriptor(number)

    def offer(self, following: str, ended: set[str]) -> None:
        """Make only the pipe with the next data readable, for a program that waits for several."""
        for stream in ("stdout", "stderr"):
            held = self._held.get(stream)
            number = -1 if held is None else held.number
            if number < 0:
                continue
            if stream in ended:
                self.let_go(stream)
            elif stream == following and stream not in self._offered:
                os.write(number, b"\0")
                self._offered.add(stream)
            elif stream != following and stream in self._offered:
                self._offered.discard(stream)
                self._drain(stream)

    def let_go(self, stream: str) -> None:
        """Close the other end of a stream."""
        held = self._held.pop(stream, None)
        self._offered.discard(stream)
        if held is not None:
            held.close()

    def release(self) -> None:
        """Close all ends."""
        held = list(self._held.values())
        self._held.clear()
        self._offered.clear()
        for each in held:
            with contextlib.suppress(OSError):
                each.close()


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
        """Take more input; the first difference, or empty if there is none."""
        expected = self._recorded[self._sent : self._sent + len(data)]
        if data == expected:
            self._sent += len(data)
            return ""
        pairs = itertools.zip_longest(expected, data)
        at = next(place for place, (one, other) in enumerate(pairs) if one != other)
        return self._said(self._sent + at, expected[at:], data[at:])

    def end(self) -> str:
        """Take the close of stdin; the difference, or empty if there is none."""
        return self._said(self._sent, self._recorded[self._sent :], b"") if self.room() > 0 else ""

    def at_exit(self) -> str:
        """Take the end of the process; the difference, or empty if there is none."""
        return self.end()

    @staticmethod
    def _said(place: int, tape: bytes, now: bytes) -> str:
        shown = [repr(side[:40])[1:] if side else "(end)" for side in (tape, now)]
        return f"at byte {place}: tape {shown[0]}, now {shown[1]}"
