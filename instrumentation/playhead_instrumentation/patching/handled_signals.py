"""Handlers of signals as they are installed in the interpreter, and the places that they interrupt."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeAlias

from playhead_instrumentation.patching import unpatched
from playhead_instrumentation.patching.patches import calls_handler

Handler: TypeAlias = Callable[[int, FrameType | None], Any]


class Handled:
    """A handler of the program, as it is installed in the interpreter."""

    __slots__ = ("_handle", "handler")

    def __init__(
        self, handler: Handler, handle: Callable[[Handler, int, FrameType | None], Any]
    ) -> None:
        """``handle``: called with the handler and its arguments when the signal has come."""
        self.handler: Final = handler
        self._handle = handle

    @calls_handler
    def __call__(self, number: int, frame: FrameType | None) -> Any:
        """The signal has come."""
        return self._handle(self.handler, number, frame)


def is_handled(number: int) -> bool:
    """Whether a handler of the program runs when the signal comes."""
    return isinstance(unpatched.getsignal(number), Handled)


def place_of(frame: FrameType) -> str:
    """Function, file and line that a frame executes, the same on another machine."""
    code = frame.f_code
    return f"{code.co_qualname} {os.path.basename(code.co_filename)}:{frame.f_lineno}"
