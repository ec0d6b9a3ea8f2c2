"""No process starts at a replay that the tape does not answer, whoever starts it."""

from __future__ import annotations

import errno
import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from playhead_instrumentation.runtime.patching import PATCHES, Patches
from playhead_instrumentation.session.session import Session, current
from playhead_semconv.errors import WorldBlocked
from playhead_semconv.facts import Fidelity

EVENTS: Final = {
    "os.system": "os.system",
    "os.posix_spawn": "os.posix_spawn",
    "os.exec": "os.exec",
    "os.spawn": "os.spawn",
    "os.startfile": "os.startfile",
    "os.forkpty": "os.forkpty",
}
"""Audit events of what starts a program, and what the program calls it."""


class ProcessBlocked(WorldBlocked, PermissionError):
    """A process that the tape does not answer. An `OSError`, as a program expects of one."""

    def __init__(self, what: str, why: str = "nothing on the tape answers it") -> None:
        WorldBlocked.__init__(self, f"the replay does not let the program start {what}", cause=why)
        self.errno = errno.EACCES
        self.strerror = self.what

    __str__ = WorldBlocked.__str__


def watch(patches: Patches, session: Session) -> None:
    """Block processes, where only a tape may answer."""
    if session.driver.fenced:
        _install()


_allowed = threading.local()


class Allowed:
    """Context manager: what is started inside, in this thread, is a process of the replay itself."""

    def __enter__(self) -> None:
        self._before = getattr(_allowed, "now", False)
        _allowed.now = True

    def __exit__(self, *_: object) -> None:
        _allowed.now = self._before


def allowed() -> bool:
    """Whether what this thread starts is a process of the replay itself."""
    return getattr(_allowed, "now", False)


def block(what: str) -> None:
    """`ProcessBlocked` at a replay."""
    session = current()
    if session is None or not session.driver.fenced or allowed():
        return
    session.driver.effect("process", what, fidelity=Fidelity.BLOCKED)
    raise ProcessBlocked(what)


@functools.cache
def _install() -> None:
    # An audit hook sees what C starts, too; it cannot be taken out again.
    sys.addaudithook(_audit)
    try:
        import _posixsubprocess
    except ImportError:
        return
    module: Any = _posixsubprocess
    original: Callable[..., int] = module.fork_exec

    # Raises no audit event of its own; multiprocessing calls it.
    @functools.wraps(original)
    def fork_exec(args: Any, *more: Any) -> int:
        words = [os.fsdecode(word) for word in args or ()]
        block(" ".join(words[:1]) or "a process")
        return original(args, *more)

    PATCHES.put(module, "fork_exec", fork_exec)
    subprocess = sys.modules.get("subprocess")
    if subprocess is not None and getattr(subprocess, "_fork_exec", None) is original:
        PATCHES.put(subprocess, "_fork_exec", fork_exec)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in EVENTS:
        first = arguments[0] if arguments else ""
        try:
            named = os.fsdecode(first)
        except TypeError:
            named = str(first)
        block(f"{EVENTS[event]} {named}".strip())
