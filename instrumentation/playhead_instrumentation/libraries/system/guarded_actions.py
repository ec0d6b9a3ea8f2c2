"""What an action would change in the world, by name, if a guard of `guards` let it happen.

Each function here gets the arguments of an audit event or of a function, and names the action; None: it
is harmless, or reaches only what belongs to the replay.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final, cast

from playhead_instrumentation.libraries import sqlite
from playhead_instrumentation.libraries.files.opening import open_stream
from playhead_instrumentation.session.session import current

FILES, NETWORK, PROCESSES = "files", "network", "processes"

ALL: Final = frozenset((FILES, NETWORK, PROCESSES))
"""The areas that the kernel guards if it can."""

WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
SINKS: Final = frozenset(("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"))
"""Devices that discard written data."""

UNNAMED: Final = "/psm_"
"""Prefix of shared-memory names that the program has not chosen itself."""

LOCAL: Final = frozenset(("127.0.0.1", "::1", "localhost"))

PATHS: Final[dict[str, tuple[tuple[int, int | None], ...]]] = {
    "os.chflags": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((1, 3),),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.removexattr": ((0, None),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.setxattr": ((0, None),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
}
"""Audit events of file changes → positions of a path and of its folder among the arguments."""

_own_folders: tuple[str, ...] = ()
"""Folders below which the replay itself may write."""


def may_write(folders: Iterable[str]) -> None:
    """Set the folders below which the replay itself may write."""
    global _own_folders
    _own_folders = tuple(os.path.realpath(one) + os.sep for one in folders)


def _opened(path: Any, _: Any, flags: Any) -> str | None:
    if isinstance(path, int):
        return None
    if isinstance(flags, int) and flags & WRITES:
        only_named = _names_only(sys._getframe(2)) or os.path.isdir(path)  # pyright: ignore[reportPrivateUsage]
        return None if only_named else _path_changed("a change to", path)
    return f"reading from the pipe {text_of(path)}" if _is_pipe(path) else None


def _names_only(frame: FrameType) -> bool:
    """Return whether this `open` gets its descriptor from an opener, which raises its own event."""
    if frame.f_code is not open_stream.__code__:
        return False
    return "real" in frame.f_locals or frame.f_locals.get("opener") is not None


def _node(path: Any, *_: Any, **__: Any) -> str | None:
    return _path_changed("a new file", path)


def _memory(path: Any, *_: Any, **__: Any) -> str | None:
    name = text_of(path)
    return None if name.startswith(UNNAMED) else f"shared memory {name}"


def _always(what: str, *_: Any, **__: Any) -> str | None:
    return what


def _is_pipe(path: Any) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode) and not _is_own(os.path.realpath(path))
    except (OSError, TypeError, ValueError):
        return False


def _changed(event: str, *arguments: Any) -> str | None:
    for at, folder in PATHS[event]:
        beneath = arguments[folder] if folder is not None and folder < len(arguments) else -1
        found = _path_changed("a change to", arguments[at], beneath)
        if found:
            return found
    return None


def _path_changed(what: str, path: Any, beneath: Any = -1) -> str | None:
    if isinstance(path, int):
        return None
    name = text_of(path)
    if isinstance(beneath, int) and beneath >= 0 and not os.path.isabs(name):
        name = f"/proc/self/fd/{beneath}/{name}"
    folder, last = os.path.split(name)
    # The last component may be a link that is replaced or followed: both places must be ours.
    places = {os.path.realpath(name), os.path.join(os.path.realpath(folder or "."), last)}
    return None if all(_is_own(place) for place in places) else f"{what} {name}"


def _is_own(place: str) -> bool:
    return place in SINKS or f"{place}{os.sep}".startswith(_own_folders)


def text_of(path: Any) -> str:
    """Return a path or another argument as text."""
    try:
        return os.fsdecode(path)
    except TypeError:
        return str(path)


def _locked(descriptor: Any, *_: Any) -> str | None:
    if isinstance(descriptor, int):
        place = f"/proc/self/fd/{descriptor}"
        if os.path.isfile(place) and not _is_own(os.path.realpath(place)):
            return f"a lock of {os.path.realpath(place)}"
    return None


def _database(name: Any, *_: Any) -> str | None:
    text = text_of(name)
    if text in ("", ":memory:") or text.startswith("file:") or sqlite.reaches_all():
        return None  # a URI, made by the boundary
    return _path_changed("a change to the database", text)


def _signalled(pid: Any, *_: Any) -> str | None:
    if pid == os.getpid() or (isinstance(pid, int) and pid > 0 and _is_child(pid)):
        return None
    if pid == 0 and os.getpgrp() == os.getpid():
        return None
    return f"a signal to the process {pid}"


def _is_child(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (OSError, AttributeError):
        return False
    return True


def _other(what: str, pid: Any, which: int = 0) -> str | None:
    """Return an action on another process; None for this one. ``which``: 0 for a process, else group or
    user."""
    return None if which == 0 and pid in (0, os.getpid()) else f"{what} of the process {pid}"


def _scheduled(pid: Any, *_: Any, **__: Any) -> str | None:
    return _other("the processors", pid)


def _priority(which: int, who: int) -> str | None:
    return _other("the priority", who, which)


def _limited(pid: Any, *_: Any) -> str | None:
    return _other("the limits", pid)


def _grouped(group: Any, _: Any) -> str | None:
    return f"a signal to the group {group}"


def _bound(_: Any, address: Any) -> str | None:
    if isinstance(address, tuple):
        host = str(cast("tuple[Any, ...]", address)[0]) if address else ""
        return None if host in LOCAL else f"listening at {host or '*'}"
    name = text_of(address)
    return None if not name or name.startswith("\0") else _path_changed("a socket at", name)


def _connected(_: Any, __: Any, host: Any = None, port: Any = None, **more: Any) -> str | None:
    """The connection that would be made; None if it is allowed. ``host``: may be a socket path."""
    host = more.get("path") if host is None else host
    session = current()
    if host is None or (session is not None and session.driver.allowed.reaches(text_of(host))):
        return None
    return f"a connection to {text_of(host)}" + (f":{port}" if port else "")


def _joined(_: Any, __: Any, local: Any = None, remote: Any = None, **more: Any) -> str | None:
    there = more.get("remote_addr") if remote is None else remote
    return None if there is None else _connected(None, None, *there[:2])


EVENTS: Final[dict[str, tuple[str, Callable[..., str | None]]]] = {
    "open": (FILES, _opened),
    **{event: (FILES, functools.partial(_changed, event)) for event in PATHS},
    "fcntl.flock": (FILES, _locked),
    "fcntl.lockf": (FILES, _locked),
    "sqlite3.connect": (FILES, _database),
    "socket.bind": (NETWORK, _bound),
    "os.kill": (PROCESSES, _signalled),
    "os.killpg": (PROCESSES, _grouped),
    "os.fork": (PROCESSES, functools.partial(_always, "a fork")),
    "resource.prlimit": (PROCESSES, _limited),
    "syslog.syslog": (NETWORK, functools.partial(_always, "a line of the system's log")),
}
"""Audit event → its area, and a function that names the action."""

CALLS: Final[tuple[tuple[str, str, str, Callable[..., str | None]], ...]] = (
    (FILES, "os posix", "mknod", _node),
    (FILES, "_posixshmem", "shm_open shm_unlink", _memory),
    (
        FILES,
        "readline",
        "write_history_file append_history_file",
        functools.partial(_always, "a history"),
    ),
    # libuv raises no audit events.
    (NETWORK, "uvloop", "Loop.create_connection Loop.create_unix_connection", _connected),
    (NETWORK, "uvloop", "Loop.create_datagram_endpoint", _joined),
    (PROCESSES, "os posix", "sched_setaffinity sched_setscheduler sched_setparam", _scheduled),
    (PROCESSES, "os posix", "setpriority", _priority),
    (PROCESSES, "signal _signal", "pidfd_send_signal", functools.partial(_always, "a signal by pidfd")),
)
"""Functions without audit events: area, modules, names, and a function that names the action."""
