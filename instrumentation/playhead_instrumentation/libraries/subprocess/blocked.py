"""Processes that a replay refuses to start, and processes that it starts for its own purposes."""

from __future__ import annotations

import errno
import threading

from playhead_core.errors import WorldBlocked


class ProcessBlocked(WorldBlocked, PermissionError):
    """The tape has no answer for this process.

    It is an `OSError`, as a program expects of a failed start.
    """

    def __init__(self, what: str, why: str = "the tape has no answer to it") -> None:
        WorldBlocked.__init__(self, f"the replay does not let the program start {what}", cause=why)
        self.errno = errno.EACCES
        self.strerror = self.what

    __str__ = WorldBlocked.__str__


_allowed = threading.local()


class Allowed:
    """Context manager: processes that this thread starts inside belong to the replay, not the run."""

    def __enter__(self) -> None:
        self._before = getattr(_allowed, "now", False)
        _allowed.now = True

    def __exit__(self, *_: object) -> None:
        _allowed.now = self._before


def allowed() -> bool:
    """Whether a process that this thread starts now belongs to the replay itself."""
    return getattr(_allowed, "now", False)
