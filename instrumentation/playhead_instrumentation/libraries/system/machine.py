"""Reads of the machine and the process itself: names, numbers, terminals.

Only the program's own files see the recorded process id: libraries read it to detect a fork. A signal to
the recorded number goes to the present process.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import platform
import socket
import sys
from types import FrameType
from typing import Any, Final

from playhead_instrumentation.libraries.ambient.stand_ins import AmbientOf, reads_of
from playhead_instrumentation.libraries.subprocess.in_full import Allowed
from playhead_instrumentation.patching.attribution.owners import installed
from playhead_instrumentation.patching.attribution.readers import RUNNERS, by_agent, is_below
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.patches import OUTER, PATCHES, Patches, calling, required
from playhead_instrumentation.recorder.reads import Reads
from playhead_instrumentation.session.session import current

MACHINE: Final = ("cpu_count", "process_cpu_count", "getlogin", "getloadavg")
"""Functions of `os` with plain results."""


SYSTEM: Final = ("system", "node", "release", "version", "machine")
"""Parts of `platform.uname` that are cheap; the remaining one, the processor, may start a process."""


@functools.cache
def _system(cls: Any, *parts: str) -> Any:
    return cls(*parts)


def watch(patches: Patches, session: object = None) -> None:
    """Patch the functions that read the machine."""
    patches.attempt("os inputs", _cover_os)
    patches.attempt("processor", _cover_processor)
    patches.attempt("process id", _cover_pid)
    patches.attempt("hostname", _cover_hostname)
    patches.attempt("terminal", _cover_terminals)


def _plain(kind: str, reads: Reads, live: Any, *arguments: Any) -> Any:
    return reads.read(kind, functools.partial(live, *arguments))


def _tuple(kind: str, reads: Reads, live: Any, *arguments: Any) -> Any:
    made: list[Any] = []

    def asked() -> list[Any]:
        made.append(live(*arguments))
        return list(made[0])

    found = reads.read(kind, asked)
    return made[0] if made else found


def _cover_os() -> None:
    for name in MACHINE:
        original = getattr(os, name, None)
        if original is not None and not hasattr(original, "__wrapped__"):
            answer = _tuple if name == "getloadavg" else _plain
            ours = AmbientOf(original, functools.partial(answer, f"inputs/os.{name}"))
            PATCHES.put(os, name, ours)
    uname: Any = getattr(os, "uname", None)
    if uname is not None and not hasattr(uname, "__wrapped__"):

        def system(reads: Reads, live: Any) -> Any:
            return os.uname_result(reads.read("inputs/os.uname", lambda: list(live())))

        PATCHES.put(os, "uname", AmbientOf(uname, system))
    PATCHES.around(platform, "uname", _whole)


def _whole(uname: Any) -> Any:
    asks = calling()
    reads = None if _at_import(asks) else reads_of(asks)
    found: Any = uname()
    if reads is None:
        return found
    # The last part is looked up when it is read.
    parts = reads.read("inputs/platform.uname", lambda: [getattr(found, one) for one in SYSTEM])
    return _system(platform.uname_result, *parts)


def _from_subprocess(from_subprocess: Any) -> Any:
    """`platform` starts a process for the processor's name; recorded only if the program asks."""
    if by_agent(calling()):
        return from_subprocess()
    with Shadow(), Allowed():
        return from_subprocess()


def _cover_processor() -> None:
    PATCHES.around(required(platform, "_Processor"), "from_subprocess", _from_subprocess)


def _at_import(frame: FrameType | None) -> bool:
    """Return whether an installed module asks during its import, as `uuid` does."""
    while frame is not None and frame.f_globals is platform.__dict__:
        frame = frame.f_back
    return (
        frame is not None and frame.f_code.co_name == "<module>" and installed(frame.f_code.co_filename)
    )


_answered: Final[set[int]] = set()
"""Recorded process ids that this replay gave to the program."""


def _cover_pid() -> None:
    getpid, getppid = os.getpid, os.getppid
    if hasattr(getpid, "__wrapped__"):
        return

    def own(reads: Reads, live: Any) -> Any:
        if _by_library():
            return live()
        found = reads.read("inputs/os.getpid", live)
        if found != live():
            _answered.add(found)
        return found

    def parent(reads: Reads, live: Any) -> Any:
        return live() if _by_library() else reads.read("inputs/os.getppid", live)

    def signalled(kill: Any, pid: int, signal: int) -> None:
        kill(getpid() if pid in _answered else pid, signal)

    PATCHES.put_all(os, {"getpid": AmbientOf(getpid, own), "getppid": AmbientOf(getppid, parent)})
    PATCHES.around(os, "kill", signalled, order=OUTER)


TELLS: Final = frozenset(("celery", *RUNNERS))
"""Installed packages that send the id of their process to others, or write it into files."""


def _by_library() -> bool:
    frame = calling()
    top = "" if frame is None else str(frame.f_globals.get("__name__")).partition(".")[0]
    if frame is None or (top in TELLS and not is_below(top)):
        return False
    return installed(frame.f_code.co_filename)


def _cover_hostname() -> None:
    original = socket.gethostname
    if not hasattr(original, "__wrapped__"):
        covered = AmbientOf(original, functools.partial(_plain, "inputs/socket.gethostname"))
        covered.__module__ = "socket"
        PATCHES.put(socket, "gethostname", covered)


def _cover_terminals() -> None:
    size, isatty = os.get_terminal_size, os.isatty
    if hasattr(size, "__wrapped__"):
        return

    def columns(reads: Reads, live: Any, *descriptor: Any) -> Any:
        def asked() -> list[int]:
            try:
                return list(live(*descriptor))
            except OSError:
                return []

        found = reads.read("inputs/os.get_terminal_size", asked)
        return os.terminal_size(found) if found else _no_terminal(live, *descriptor)

    def terminal(reads: Reads, live: Any, descriptor: Any) -> Any:
        if descriptor not in (0, 1, 2):
            return live(descriptor)
        return reads.read("inputs/os.isatty", functools.partial(live, descriptor))

    PATCHES.put_all(
        os, {"get_terminal_size": AmbientOf(size, columns), "isatty": AmbientOf(isatty, terminal)}
    )
    for name in ("stdin", "stdout", "stderr"):
        stream: Any = getattr(sys, name, None)
        if getattr(stream, "isatty", None) is None or PATCHES.covers(stream, "isatty"):
            continue
        with contextlib.suppress(AttributeError):
            PATCHES.around(stream, "isatty", functools.partial(_isatty, f"inputs/{name}.isatty"))


def _no_terminal(live: Any, *descriptor: Any) -> Any:
    """Replay: raise the error of a file that is no terminal."""
    session = current()
    if session is None or not session.driver.closed:
        return live(*descriptor)
    raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))


def _isatty(kind: str, isatty: Any) -> bool:
    reads = reads_of(calling())
    return isatty() if reads is None else reads.read(kind, isatty)
