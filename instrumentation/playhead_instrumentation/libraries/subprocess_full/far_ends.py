"""The other ends of the pipes to a child process. A replay holds them, since no child exists."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

from playhead_core.process.own_descriptors import OwnDescriptor

if TYPE_CHECKING:
    from collections.abc import Callable


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
