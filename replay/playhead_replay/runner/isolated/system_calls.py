"""System calls that Python has no functions for: mounts and capabilities."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Final

MS_NOSUID: Final = 2
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18
SYS_MOUNT_SETATTR: Final = 442
AT_FDCWD: Final = -100
AT_RECURSIVE: Final = 0x8000
MOUNT_ATTR_RDONLY: Final = 1
MOUNT_ATTR_NOSUID: Final = 2
MOUNT_ATTR_NODEV: Final = 4
PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_CAPBSET_DROP: Final = 24
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
CAPABILITY_VERSION: Final = 0x20080522

KEPT_CAPABILITIES: Final = (0, 1, 3, 4, 5, 6, 7, 10)
"""Capabilities that root keeps if it had them: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID,
SETUID and NET_BIND_SERVICE.

Inside the namespaces they do not reach anything outside.
"""

CAPABILITIES: Final = 64
"""Upper bound of capability numbers."""

libc = ctypes.CDLL(None, use_errno=True)


class Attributes(ctypes.Structure):
    """``struct mount_attr``."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns_fd")]


def mount(source: str | None, target: str, kind: str | None, flags: int = 0, data: str = "") -> None:
    """See mount(2). `OSError`."""
    words = [None if one is None else os.fsencode(one) for one in (source, target, kind)]
    checked(libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(data)), target)


def set_attributes(target: str, set: int, clear: int, flags: int = 0) -> None:
    """Set and clear attributes of a mount, see mount_setattr(2). `OSError`."""
    attributes = Attributes(set, clear, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    done = libc.syscall(
        SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(target), flags, ctypes.byref(attributes), size
    )
    checked(done, target)


def checked(done: int, target: str) -> None:
    """Raise `OSError` if a system call has failed."""
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def tried(do: Callable[[], None]) -> bool:
    """Do something; whether the system allows it."""
    try:
        do()
    except (OSError, AttributeError):
        return False
    return True


def capabilities() -> int:
    """The permitted capabilities of this process, as a bit mask."""
    header, data = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    libc.capget(header, data)
    return data[1] | data[4] << 32


def drop_capabilities(before: int) -> None:
    """Of the capabilities ``before``, keep only those that change nothing outside."""
    kept = sum(1 << number for number in KEPT_CAPABILITIES) & before
    for number in range(CAPABILITIES):
        if not kept >> number & 1:
            libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    low, high = kept & 0xFFFFFFFF, kept >> 32
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    checked(libc.capset(header, data), "capabilities")
    checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "privileges")
