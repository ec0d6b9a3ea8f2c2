"""Guards of a replay that the kernel does not isolate, or not fully, because namespaces are not allowed.

Actions of Python below all boundaries (`posix.open`, `io.FileIO`, a raw fork) are refused. Actions in C
cannot be refused: the load of a library that is able to act so is put on the tape, and the report says
that nothing kept it from the world. Where the recording has no files, the user has agreed that files are
changed for real; the changes are put on the tape.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import sysconfig
import threading
from collections.abc import Callable, Collection
from importlib.machinery import EXTENSION_SUFFIXES
from types import FrameType, ModuleType
from typing import Any, Final, cast

from playhead_instrumentation.boundaries.process import blocked
from playhead_instrumentation.host.files.opening import open_stream
from playhead_instrumentation.host.sqlite import connections
from playhead_instrumentation.runtime import lanes
from playhead_instrumentation.runtime.attribution.callers import CallSite, caller, installed
from playhead_instrumentation.runtime.attribution.owners import Owner, owner_of
from playhead_instrumentation.runtime.patching import INNER, PATCHES
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv.errors import WorldBlocked
from playhead_semconv.facts import Fidelity
from playhead_semconv.process.module_coverage import REPEATED, UNHELD, unseen

FILES, NETWORK, PROCESSES = "files", "network", "processes"

ALL: Final = frozenset((FILES, NETWORK, PROCESSES))
"""The areas that the kernel guards where it can."""

WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
SINKS: Final = frozenset(("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"))
"""Devices that discard written data."""

READING: Final = frozenset(
    "clock_gettime getegid geteuid getgid getpid getppid getrandom gettimeofday getuid "
    "nanosleep sleep strerror strlen time usleep".split()
)
"""Symbols of the C library that change nothing."""

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
_seen: set[tuple[str, str]] = set()
_busy = threading.local()


class WorldUnheld(WorldBlocked, PermissionError):
    """A replay refuses this action. An `OSError`, since programs expect one from the system."""

    def __init__(self, what: str, who: CallSite) -> None:
        place = f"{who.place}: " if who.place else ""
        WorldBlocked.__init__(
            self,
            f"the replay does not let {who.library or 'the program'} do this: {what}",
            cause=f"{place}no boundary records it, and here the kernel does not keep it from the world",
            hint="allow namespaces of users and mounts, or mark what does it with @playhead.tool",
        )
        self.errno = 13
        self.strerror = self.what

    __str__ = WorldBlocked.__str__


def watch(held: Collection[str], folder: str) -> None:
    """Guard the areas that are not in ``held``; the replay itself may write below ``folder``."""
    global _own_folders
    session = current()
    missing = ALL - frozenset(held)
    if session is None or not session.driver.fenced or not missing:
        return
    files = session.driver.files
    own = [folder] if files is None else [folder, files.scratch]
    _own_folders = tuple(os.path.realpath(one) + os.sep for one in own if one)
    for module in list(sys.modules):
        _loaded(module, "")
    _install(frozenset(missing))


@functools.cache
def _install(missing: frozenset[str]) -> None:
    if FILES in missing:
        sys.dont_write_bytecode = True
    for area, modules, names, said in CALLS:
        if area in missing:
            for module in modules.split():
                for name in names.split():
                    _before(area, module, name, said)
    # Python cannot remove an audit hook.
    sys.addaudithook(functools.partial(_audit, missing))


def _before(area: str, module: str, name: str, said: Callable[..., str | None]) -> None:
    """Refuse calls of ``module.name`` for which ``said`` names an action (None: harmless)."""

    def layer(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        _asked(area, said(*args, **kwargs))
        return original(*args, **kwargs)

    def apply(imported: ModuleType) -> None:
        owner, _, last = name.rpartition(".")
        place = getattr(imported, owner, None) if owner else imported
        if hasattr(place, last):
            PATCHES.around(place, last, layer, order=INNER)

    PATCHES.when_imported(module, f"{module}.{name}", apply)


def _audit(missing: frozenset[str], event: str, arguments: tuple[Any, ...]) -> None:
    look = EVENTS.get(event)
    if look is None or getattr(_busy, "now", False):
        return
    area, said = look
    if area is not None and area not in missing:
        return
    _busy.now = True
    try:
        what = said(*arguments)
    finally:
        _busy.now = False
    _asked(area, what)


def _asked(area: str | None, what: str | None) -> None:
    """Raise `WorldUnheld`, unless the action is harmless (None) or done by code that runs for real."""
    session = current()
    if what is None or session is None or not session.driver.fenced:
        return
    if lanes.current() is lanes.UNRECORDED or blocked.allowed() or lanes.in_own_thread():
        return
    if _between_workers(sys._getframe(2)):  # pyright: ignore[reportPrivateUsage]
        return
    who = caller(3)
    if area == FILES and not session.has("files"):
        _once(session, REPEATED, what, who)
        return
    _note(session, "world", what, who, Fidelity.BLOCKED)
    raise WorldUnheld(what, who)


def _between_workers(frame: FrameType | None) -> bool:
    """Whether `multiprocessing` does it, to pass data between processes of the replay."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_WORKERS):
            return not name.endswith("shared_memory.py")
        if name.startswith("<") or owner_of(name) not in (Owner.STANDARD, Owner.OURS):
            return False
        frame = frame.f_back
    return False


def _note(session: Session, kind: str, what: str, who: CallSite, fidelity: Fidelity) -> None:
    found = {a.PLAYHEAD_EFFECT_LIBRARY: who.library, a.PLAYHEAD_EFFECT_PLACE: who.place}
    text = session.redactor.text(what)
    session.driver.effect(
        kind, text, fidelity=fidelity, attributes={name: value for name, value in found.items() if value}
    )


def _unheld(what: str, who: CallSite) -> None:
    """Note, once per place, that the program can reach something unguarded."""
    session = current()
    if session is not None and session.driver.fenced:
        _once(session, UNHELD, what, who)


def _once(session: Session, kind: str, what: str, who: CallSite) -> None:
    if (what, who.place) not in _seen:
        _seen.add((what, who.place))
        _note(session, kind, what, who, Fidelity.LIVE)


def _opened(path: Any, _: Any, flags: Any) -> str | None:
    if isinstance(path, int):
        return None
    if isinstance(flags, int) and flags & WRITES:
        only_named = _names_only(sys._getframe(2)) or os.path.isdir(path)  # pyright: ignore[reportPrivateUsage]
        return None if only_named else _path_changed("a change to", path)
    return f"reading from the pipe {_text(path)}" if _is_pipe(path) else None


def _names_only(frame: FrameType) -> bool:
    """Whether this `open` gets its descriptor from an opener, which raises its own event."""
    if frame.f_code is not open_stream.__code__:
        return False
    return "real" in frame.f_locals or frame.f_locals.get("opener") is not None


def _node(path: Any, *_: Any, **__: Any) -> str | None:
    return _path_changed("a new file", path)


def _memory(path: Any, *_: Any, **__: Any) -> str | None:
    name = _text(path)
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
    name = _text(path)
    if isinstance(beneath, int) and beneath >= 0 and not os.path.isabs(name):
        name = f"/proc/self/fd/{beneath}/{name}"
    folder, last = os.path.split(name)
    # The last component may be a link that is replaced or followed: both places must be ours.
    places = {os.path.realpath(name), os.path.join(os.path.realpath(folder or "."), last)}
    return None if all(_is_own(place) for place in places) else f"{what} {name}"


def _is_own(place: str) -> bool:
    return place in SINKS or f"{place}{os.sep}".startswith(_own_folders)


def _text(path: Any) -> str:
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
    text = _text(name)
    if text in ("", ":memory:") or text.startswith("file:") or connections.reaches_all():
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
    """An action on another process; None for this one. ``which``: 0 for a process, else group or
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
    name = _text(address)
    return None if not name or name.startswith("\0") else _path_changed("a socket at", name)


def _connected(_: Any, __: Any, host: Any = None, port: Any = None, **more: Any) -> str | None:
    """The connection that would be made; None where it is allowed. ``host``: may be a socket path."""
    host = more.get("path") if host is None else host
    session = current()
    if host is None or (session is not None and session.driver.allowed.reaches(_text(host))):
        return None
    return f"a connection to {_text(host)}" + (f":{port}" if port else "")


def _joined(_: Any, __: Any, local: Any = None, remote: Any = None, **more: Any) -> str | None:
    there = more.get("remote_addr") if remote is None else remote
    return None if there is None else _connected(None, None, *there[:2])


def _library(name: Any, *_: Any) -> None:
    text = _text(name or "")
    if os.sep in text and _by_others(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
        _unheld(f"{text} through ctypes", caller(3))


def _symbol(_: Any, name: Any) -> None:
    if name not in READING and _by_others(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
        text = name if isinstance(name, str) else _text(name) if isinstance(name, bytes) else name
        _unheld(f"{text} through ctypes", caller(3))


def _by_others(frame: FrameType | None) -> bool:
    """Whether the user of ctypes is neither the standard library nor playhead."""
    while frame is not None:
        name = frame.f_code.co_filename
        owner = owner_of(name)
        if owner is not Owner.OURS and not name.startswith(_CTYPES):
            return owner is not Owner.STANDARD
        if owner is Owner.OURS and name != __file__:
            return False
        frame = frame.f_back
    return False


def _loaded(module: Any, path: Any, *_: Any) -> None:
    known = unseen(module)
    if known is not None and known.in_c:
        top = module.partition(".")[0]
        _unheld(f"{top}, which works in C", CallSite(top))
    elif isinstance(path, str) and path.endswith(tuple(EXTENSION_SUFFIXES)) and not installed(path):
        _unheld(f"{module}, compiled code", CallSite(module))


_STANDARD: Final = os.path.realpath(sysconfig.get_path("stdlib"))
_WORKERS: Final = os.path.join(_STANDARD, "multiprocessing", "")
_CTYPES: Final = os.path.join(_STANDARD, "ctypes", "")

EVENTS: Final[dict[str, tuple[str | None, Callable[..., str | None]]]] = {
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
    "ctypes.dlopen": (None, _library),
    "ctypes.dlsym": (None, _symbol),
    "ctypes.dlsym/handle": (None, _symbol),
    "import": (None, _loaded),
}
"""Audit event → its area (None: possibly all), and a function that names the action."""

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
