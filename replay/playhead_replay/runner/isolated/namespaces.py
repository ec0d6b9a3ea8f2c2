"""Namespaces of the kernel: entering them, and the processes that stay outside."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from collections.abc import Callable
from typing import Final, NoReturn

from .system_calls import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, libc, tried

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

# The functions as they are before boundaries are patched.
_kill: Final = os.kill
_waitpid: Final = os.waitpid
_fork: Final = ctypes.PyDLL(None).fork
"""Skips Python's fork handlers: for the program, there is only this one process."""


def unshared(flags: int) -> bool:
    """Enter new namespaces, including a user namespace if possible; all ids keep their values."""
    user, group = os.geteuid(), os.getegid()
    maps = [(name, _same(name)) for name in ("uid_map", "gid_map")]
    if user == 0 and _with_help(maps, lambda: libc.unshare(flags | CLONE_NEWUSER) == 0):
        return True
    if user == 0 and libc.unshare(flags) == 0:
        return True
    own = [("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")]
    return libc.unshare(flags | CLONE_NEWUSER) == 0 and tried(lambda: _mapped("self", own))


def _same(name: str) -> str:
    """An id map in which each existing id maps to itself."""
    try:
        with open(f"/proc/self/{name}", encoding="ascii") as lines:
            return "".join(f"{first} {first} {count}\n" for first, _, count in map(str.split, lines))
    except OSError:
        return ""


def _with_help(maps: list[tuple[str, str]], unshare: Callable[[], bool]) -> bool:
    """Enter a user namespace in which every id is mapped.

    A helper process that stays outside has to write the map.
    """
    target = os.getpid()
    (waits, goes), (hears, tells) = os.pipe(), os.pipe()
    helper = _fork()
    if helper == 0:
        try:
            os.close(goes)
            told = os.read(waits, 1) and tried(lambda: _mapped(str(target), maps))
            os.write(tells, b"1" if told else b"0")
        finally:
            os._exit(0)
    for theirs in (waits, tells):
        os.close(theirs)
    try:
        if helper < 0 or not unshare():
            return False
        os.write(goes, b"1")
        if os.read(hears, 1) != b"1":
            raise SystemExit("the user namespace of this replay has no users")
        return True
    finally:
        os.close(goes)
        os.close(hears)
        if helper > 0:
            _waitpid(helper, 0)


def _mapped(process: str, maps: list[tuple[str, str]]) -> None:
    for name, text in maps:
        write(f"/proc/{process}/{name}", text)


def users() -> str:
    """Identifier of the current user namespace."""
    return os.readlink("/proc/self/ns/user")


def write(path: str, text: str) -> None:
    """Write ``text`` to a file of ``/proc``. `OSError`."""
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def leave_behind(parent: int, patience_s: float) -> None:
    """Return in a process of the new namespace; the caller stays outside and ends with the same status.

    Between the two runs the init process of the PID namespace; when it dies, all others in it die.
    """
    hears, tells = os.pipe()
    first = _fork()
    if first < 0:
        raise SystemExit("no process can be made in the namespace of this replay")
    if first == 0:
        os.close(hears)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        command = _fork()
        if command == 0:
            os.close(tells)
            return
        _reap(command, tells)
    os.close(tells)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with(parent)
    said = os.read(hears, 16)
    # becomes readable when all processes of the namespace have ended
    select.select([hears], [], [], patience_s)
    _kill(first, signal.SIGKILL)
    _waitpid(first, 0)
    _end_as(int(said) if said else signal.SIGKILL)


def _reap(command: int, tells: int) -> NoReturn:
    """Act as the init process of a PID namespace until no other process is left in it."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            pid, status = _waitpid(-1, 0)
            if pid == command:
                os.write(tells, b"%d" % status)
    except ChildProcessError:
        pass
    finally:
        os._exit(0)


def _end_as(status: int) -> NoReturn:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        _kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def die_with(parent: int) -> None:
    """Let this process die with its parent, which must be ``parent`` still."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit("the process that started this replay has ended")
