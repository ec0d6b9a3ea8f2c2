"""Processes on a terminal of their own: ``pty.spawn``, ``pty.fork``, ``os.forkpty``.

The output of the terminal is the child's stdout; the program's input to it is the child's stdin. A
replay starts nothing, even if the child is a fork that runs Python: the program gets the recorded
output.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.subprocess.pipes import PipeEnd, watch_numbers
from playhead_instrumentation.libraries.subprocess.process_start import ProcessStart, words_of
from playhead_instrumentation.libraries.subprocess_full.child import Child
from playhead_instrumentation.libraries.subprocess_full.exchange import begin
from playhead_instrumentation.libraries.subprocess_full.live_child import LiveChild
from playhead_instrumentation.libraries.subprocess_full.replayed_child import ReplayedChild
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.session.session import Session

SPAWN, FORK = "pty.spawn", "pty.fork"

TERMINAL: Final = ("terminal", "terminal", "terminal")

_spawning = threading.local()


class Master(PipeEnd):
    """Our end of a terminal. The end of its output is an error."""

    def live(self, read: Callable[[int], bytes]) -> Callable[[int], bytes]:
        """See `PipeEnd.live`."""

        def until_end(size: int) -> bytes:
            try:
                return read(size)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                return b""

        return until_end

    def ends(self, data: bytes) -> bytes:
        """See `PipeEnd.ends`. Raises `OSError` (EIO)."""
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def cover_forkpty() -> None:
    """Patch ``os.forkpty``."""
    if hasattr(os, "forkpty"):
        PATCHES.around(os, "forkpty", _fork)


def patch(module: ModuleType) -> None:
    """Patch ``pty.fork`` and ``pty.spawn``."""
    PATCHES.around(module, "fork", _fork)
    PATCHES.around(module, "spawn", _spawn)
    if "waitpid" in module.__dict__:
        PATCHES.put(module, "waitpid", os.waitpid)  # the module imported the original


def _spawn(original: Any, argv: Any, *args: Any, **kwargs: Any) -> Any:
    if recording() is None:
        return original(argv, *args, **kwargs)
    _spawning.words = words_of((argv,) if isinstance(argv, str) else argv)
    try:
        return original(argv, *args, **kwargs)
    finally:
        _spawning.words = ()


def _fork(original: Any) -> Any:
    session = recording()
    if session is None:
        return original()
    words: tuple[str, ...] = getattr(_spawning, "words", ())
    call = SPAWN if words else FORK
    child = begin(session, ProcessStart(call, words, executable="" if words else FORK, streams=TERMINAL))
    if child is None:
        return original()
    return child.answer(_fork_live, _fork_again, session, original, bool(words))


def _fork_live(child: LiveChild, session: Session, original: Any, execs: bool) -> tuple[int, int]:
    try:
        with session.process.forks(str(child.call.id), execs=execs), Shadow():
            pid, number = original()
    except BaseException as error:
        child.failed(error)
        raise
    if pid:
        child.started(pid)
        return pid, _end_of(child, number)
    if execs:
        os.environ.update(child.environment(None))
        Shadow().__enter__()
    return pid, number


def _fork_again(child: ReplayedChild, *_: Any) -> tuple[int, int]:
    ours, theirs = socket.socketpair()
    pid = child.start_again()
    child.far.hold("stdout", theirs.detach())
    return pid, _end_of(child, ours.detach())


def _end_of(child: Child, number: int) -> int:
    watch_numbers()
    child.terminal = Master(number, "r+", closefd=False)
    child.terminal.of(child, "stdout")
    child.offer()
    return number
