"""Registry for the code that records a child process in full: pipe contents, waits, signals and files.

At level ``exchanges`` a child is only observed (`observed`), and nothing else is imported. The row
``processes.talk`` of the table of boundaries installs `host.process`, which registers itself here. Every
level above has that row, and so does every replay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from playhead_instrumentation.libraries.subprocess.blocked import ProcessBlocked
from playhead_instrumentation.libraries.subprocess.words import Started
from playhead_instrumentation.session.session import Session

TALK: Final = "processes.talk"
"""The boundary that records more of a child than its start and end."""


class InFull(msgspec.Struct, frozen=True):
    """Replaces `observed` where a child is recorded in full, or where a tape answers it."""

    popen: Callable[[Session, Any, Any, dict[str, Any]], Any]
    """``popen(session, original, popen, given)`` does what ``Popen._execute_child`` does.

    ``given``: its arguments by name. Raises what the original raises; `ProcessBlocked` at a replay.
    """
    functions: Mapping[str, Callable[..., Any]]
    """By name: ``function(original, *arguments)`` does and raises what the function of `os` does."""
    begin: Callable[[Session, Started], Any]
    """``begin(session, started)`` opens the exchange; None: it failed; the child may start for real."""
    until_over: Callable[[Any, int], None]
    """``until_over(child, status)`` waits, at a replay, for the end of what ran in the child's place."""


_entered: InFull | None = None


def enter(full: InFull) -> None:
    """Use ``full`` for children from now on. It stays registered when the session ends."""
    global _entered
    _entered = full


def in_full(session: Session) -> InFull | None:
    """Return what handles a child that starts now; None: the child is only observed.

    Raises `ProcessBlocked` at a replay where nothing is registered: a replay starts nothing for real.
    """
    if not session.has(TALK) and not session.driver.closed:
        return None
    if _entered is None and session.driver.closed:
        raise ProcessBlocked("a process", "what answers it from the tape could not be installed")
    return _entered
