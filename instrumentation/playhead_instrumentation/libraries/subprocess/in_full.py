"""Registry for the code that records a child process in full: pipe contents, waits, signals and files.

At level ``exchanges`` a child is only observed (`observed`), and nothing else is imported. The row
``processes.talk`` of the table of boundaries installs `subprocess_full`, which registers itself here.
Every level above has that row, and so does every replay. The errors of a replay that may not start a
process are here too.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

import msgspec

from playhead_core.errors import WorldBlocked
from playhead_instrumentation.libraries.subprocess.process_start import ProcessStart
from playhead_instrumentation.session.session import Session

TALK: Final = "processes.talk"
"""The boundary that records more of a child than its start and end."""


class InFull(msgspec.Struct, frozen=True):
    """Replaces `observed` if a child is recorded in full, or if a tape answers it."""

    popen: Callable[[Session, Any, Any, dict[str, Any]], Any]
    """``popen(session, original, popen, given)`` does what ``Popen._execute_child`` does.

    ``given``: its arguments by name. Raises what the original raises; `ProcessBlocked` in a replay.
    """
    functions: Mapping[str, Callable[..., Any]]
    """By name: ``function(original, *arguments)`` does and raises what the function of `os` does."""
    begin: Callable[[Session, ProcessStart], Any]
    """``begin(session, started)`` opens the exchange; None: it failed; the child may start for real."""
    until_over: Callable[[Any, int], None]
    """``until_over(child, status)`` waits, in a replay, for the end of what ran in the child's place."""


_entered: InFull | None = None


def enter(full: InFull) -> None:
    """Use ``full`` for children from now on. It stays registered when the session ends."""
    global _entered
    _entered = full


def in_full(session: Session) -> InFull | None:
    """Return what handles a child that starts now; None: the child is only observed.

    Raises `ProcessBlocked` in a replay if nothing is registered: a replay starts nothing for real.
    """
    if not session.has(TALK) and not session.driver.closed:
        return None
    if _entered is None and session.driver.closed:
        raise ProcessBlocked("a process", "what answers it from the tape could not be installed")
    return _entered


class ProcessBlocked(WorldBlocked, PermissionError):
    """The tape has no answer for this process.

    It is an `OSError`, as a program expects of a failed start.
    """

    def __init__(self, what: str, why: str = "the tape has no answer to it") -> None:
        WorldBlocked.__init__(self, f"the replay does not let the program start {what}", cause=why)
        self.errno = errno.EACCES
        self.strerror = self.what

    __str__ = WorldBlocked.__str__


_allowed: ContextVar[bool] = ContextVar("playhead_allowed", default=False)


class Allowed:
    """Context manager: processes that are started inside belong to the replay, not to the run."""

    def __enter__(self) -> None:
        self._token = _allowed.set(True)

    def __exit__(self, *_: object) -> None:
        _allowed.reset(self._token)


def allowed() -> bool:
    """Return whether a process that is started now belongs to the replay itself."""
    return _allowed.get()
