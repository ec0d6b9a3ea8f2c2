"""The other ends of the pipes to a child process, which are ours at a replay: nobody else is there."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


class FarEnds:
    """Descriptors by the name of the stream. What is read stands on the tape; they make it readable."""

    def __init__(self, drain: Callable[[str], None]) -> None:
        """``drain``: have the program's end of a stream not be readable any more."""
        self._drain: Final = drain
        self._held: dict[str, int] = {}
        self._offered: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._held)

    def hold(self, stream: str, number: int) -> None:
        """``number`` is the other end of a stream from now on, and ours to close."""
        self._held[stream] = number

    def offer(self, following: str, ended: set[str]) -> None:
        """Have the pipe be readable whose data comes next, and no other: so is who waits for several."""
        for stream in ("stdout", "stderr"):
            number = self._held.get(stream)
            if number is None:
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
        """Nobody is at the other end of a stream any more."""
        number = self._held.pop(stream, None)
        self._offered.discard(stream)
        if number is not None:
            os.close(number)

    def release(self) -> None:
        """Close them all."""
        held = list(self._held.values())
        self._held.clear()
        self._offered.clear()
        for number in held:
            with contextlib.suppress(OSError):
                os.close(number)
