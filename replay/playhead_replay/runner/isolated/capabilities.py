"""Capabilities of a process: which it has, and which it keeps."""

from __future__ import annotations

import ctypes
from typing import Final

from .system_calls import checked, libc

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


def capabilities() -> int:
    """The permitted capabilities of this process, as a bit mask."""
    header, data = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    libc.capget(header, data)
    return data[1] | data[4] << 32


def drop(before: int) -> None:
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
