"""``python -I -S isolated.py --parent PID --said FILE [--network none] [--scratch DIR] -- COMMAND``.

Becomes the command, which dies with process PID. Where Linux allows it, the command has no network, and
no file outside of ``--scratch`` can be changed: all that is mounted is read-only, and the folder of the
program and those for temporary files lie behind overlays, whose changes are thrown away. What the
kernel enforces is written to FILE: ``network``, ``files``.

A script of its own, as only a process with one thread can enter a user namespace.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
from collections.abc import Callable
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWNET: Final = 0x40000000
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18
SYS_MOUNT_SETATTR: Final = 442
AT_FDCWD: Final = -100
AT_RECURSIVE: Final = 0x8000
MOUNT_ATTR_RDONLY: Final = 1
PR_SET_PDEATHSIG: Final = 1

_libc = ctypes.CDLL(None, use_errno=True)


class Attributes(ctypes.Structure):
    """``struct mount_attr``."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns_fd")]


def main(words: list[str]) -> None:
    """See the module."""
    split = words.index("--")
    options, command = words[:split], words[split + 1 :]
    enter(options)
    try:
        os.execvp(command[0], command)
    except OSError as problem:
        sys.stderr.write(f"{command[0]}: {problem.strerror}\n")
        raise SystemExit(127) from None


def enter(options: list[str]) -> None:
    """Have this process be as they say. It must have one thread."""
    values = dict(zip(options[::2], options[1::2], strict=True))
    enforced: list[str] = []
    network, scratch = values.get("--network") == "none", values.get("--scratch", "")
    flags = (CLONE_NEWNET if network else 0) | (CLONE_NEWNS if scratch else 0)
    if flags and _unshared(flags):
        enforced += ["network"] if network else []
        if scratch and _tried(lambda: _only_in(scratch)):
            enforced.append("files")
    with open(values["--said"], "w", encoding="utf-8") as said:
        said.write("\n".join(enforced))
    _die_with(int(values["--parent"]))


def _die_with(parent: int) -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit("whoever started this replay is gone")


def _unshared(flags: int) -> bool:
    """In namespaces of its own; where a user namespace is needed, in one that keeps the user's id."""
    user, group = os.geteuid(), os.getegid()
    if user == 0 and _libc.unshare(flags) == 0:
        return True
    if _libc.unshare(flags | CLONE_NEWUSER) != 0:
        return False
    return _tried(lambda: _mapped(user, group))


def _mapped(user: int, group: int) -> None:
    maps = ("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")
    for name, text in maps:
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _only_in(scratch: str) -> None:
    """Leave nothing that can be changed but ``scratch``."""
    cwd = os.getcwd()
    points = _mount_points()
    inside = os.path.join(scratch, "over")
    os.mkdir(inside)
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    _mount(scratch, scratch, None, MS_BIND)
    _mount("tmpfs", inside, "tmpfs")
    _set("/", MOUNT_ATTR_RDONLY, 0, AT_RECURSIVE)
    for mine in (scratch, inside):
        _set(mine, 0, MOUNT_ATTR_RDONLY)
    kept = os.open(scratch, os.O_PATH)
    if "/dev/shm" in points:
        _tried(lambda: _mount("tmpfs", "/dev/shm", "tmpfs"))
    covered: list[str] = []
    for number, folder in enumerate(_apart([cwd, "/tmp", "/var/tmp"], points)):
        if _tried(lambda folder=folder, number=number: _over(folder, f"{inside}/{number}")):
            covered.append(folder)
    if any(scratch.startswith(folder + os.sep) for folder in covered):
        _mount(f"/proc/self/fd/{kept}", scratch, None, MS_BIND)
    os.close(kept)
    os.chdir(cwd)


def _apart(folders: list[str], points: list[str]) -> list[str]:
    """Real folders, none below another. None with a mount below it: that would vanish."""
    real = sorted({os.path.realpath(folder) for folder in folders if os.path.isdir(folder)})
    apart: list[str] = []
    for folder in real:
        below = folder.rstrip(os.sep) + os.sep
        if not any(folder.startswith(other + os.sep) for other in apart) and not any(
            point.startswith(below) for point in points
        ):
            apart.append(folder)
    return apart


def _over(folder: str, beside: str) -> None:
    """Put an overlay over ``folder``; what is changed there goes below ``beside``."""
    if any(sign in folder for sign in ",:\\"):
        raise OSError(f"no overlay over {folder}")
    upper, work = f"{beside}/upper", f"{beside}/work"
    for made in (beside, upper, work):
        os.mkdir(made)
    os.chmod(upper, os.stat(folder).st_mode & 0o7777)
    _mount("overlay", folder, "overlay", 0, f"lowerdir={folder},upperdir={upper},workdir={work}")


def _mount_points() -> list[str]:
    with open("/proc/self/mountinfo", "rb") as lines:
        points = [line.split()[4] for line in lines]
    return [os.fsdecode(re.sub(rb"\\([0-7]{3})", _octal, point)) for point in points]


def _octal(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8)])


def _mount(source: str | None, target: str, kind: str | None, flags: int = 0, data: str = "") -> None:
    words = [None if one is None else os.fsencode(one) for one in (source, target, kind)]
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(data)), target)


def _set(target: str, set: int, clear: int, flags: int = 0) -> None:
    attributes = Attributes(set, clear, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    done = _libc.syscall(
        SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(target), flags, ctypes.byref(attributes), size
    )
    _checked(done, target)


def _checked(done: int, target: str) -> None:
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def _tried(do: Callable[[], None]) -> bool:
    try:
        do()
    except (OSError, AttributeError):
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
