"""Stand-ins for functions that read a clock or entropy."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching.attribution.readers import AGENT, MACHINERY, PLACES, by_agent
from playhead_instrumentation.patching.builtins import Behind
from playhead_instrumentation.patching.layers import stands_for
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.recorder.reads import Reads
from playhead_instrumentation.session.session import current

log = Log(__name__)

T = TypeVar("T")


class Ambient(metaclass=Behind):
    """Stand-in for a C function without arguments, under the same name.

    Like a C function, and unlike a Python function, it does not become a method as the attribute of a
    class. Like both, it is pickled and copied by its name.
    """

    def __init__(self, boundary: str, original: Callable[[], Any], *, since: bool = False) -> None:
        """``since``: see `Reads.read`."""
        self.__wrapped__ = original
        self.__doc__ = original.__doc__
        self.__name__ = original.__name__
        self.__qualname__ = original.__name__
        self.__module__ = original.__module__
        self._live = original
        self._kind = f"{boundary}/{original.__module__}.{original.__name__}"
        self._since = since

    @stands_for
    def __call__(self) -> Any:
        """Return the value that the driver answers."""
        try:
            place = PLACES.get(getframe(1).f_code.co_filename)
        except ValueError:  # the interpreter itself calls, as a callback
            place = None
        if place == MACHINERY:
            return self._live()
        reads = reads_of_agent(1)
        if reads is None:
            return self._live()
        try:
            return reads.read(self._kind, self._live, since=self._since)
        except Exception:
            if not PATCHES.forgiving:
                raise
            log.debug("playhead failed in a read of %s", self._kind, exc_info=True)
        return self._live()

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class AmbientOf(Ambient):
    """Stand-in for a function with arguments. ``answer(reads, live, *arguments)`` gives its result."""

    def __init__(self, original: Callable[..., Any], answer: Callable[..., Any]) -> None:
        super().__init__("", original)
        self._answer = answer

    @stands_for
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result, computed from reads that the driver answers."""
        reads = reads_of_agent(1)
        if reads is None:
            return self._live(*args, **kwargs)
        return PATCHES.call(functools.partial(self._answer, reads), self._live, *args, **kwargs)


class AmbientEntropy(AmbientOf):
    """A source of entropy. A replay notes draws that are on no tape because they are secret."""

    @stands_for
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the bytes drawn."""
        reads = reads_of_agent(1)
        if reads is not None:
            return PATCHES.call(functools.partial(self._answer, reads), self._live, *args, **kwargs)
        drawn = self._live(*args, **kwargs)
        session = current()
        return drawn if session is None else noted(session.driver.reads, drawn)


def noted(reads: Reads, drawn: T) -> T:
    """Note ``drawn``, from a source that is on no tape, at a replay. Return it."""
    if reads.on_drawn is not None:
        reads.on_drawn(drawn)
    return drawn


getframe: Final = sys._getframe  # pyright: ignore[reportPrivateUsage]
"""``getframe(depth)`` is the frame so many calls above; ValueError where there are not so many."""


def reads_of_agent(depth: int) -> Reads | None:
    """Return what answers the code ``depth`` frames above the caller; None: the real function does.

    Never raises while recording.
    """
    try:
        return reads_of(getframe(depth + 1))
    except Exception:
        if not PATCHES.forgiving:
            raise
        log.debug("playhead could not see who reads", exc_info=True)
        return None


def reads_of(frame: FrameType | None) -> Reads | None:
    """The same for the code of a frame."""
    place = None if frame is None else PLACES.get(frame.f_code.co_filename)
    if place == MACHINERY or (place != AGENT and not by_agent(frame)):
        return None
    session = current()
    return None if session is None else session.driver.reads
