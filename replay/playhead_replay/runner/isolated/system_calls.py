"""System calls that Python has no functions for."""

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
