"""Tells a process from every other on its machine, so that its death is noticed at once.

A process number is used again after the end of its process. So a process is told by three values of the
Linux kernel, too: the boot of the machine, the namespace of the number, and when the process started.
"""

from __future__ import annotations

import os

BOOT = "/proc/sys/kernel/random/boot_id"
NAMESPACE = "/proc/self/ns/pid"

_STATE, _STARTED = 0, 19
"""Places of two fields of ``/proc/PID/stat`` behind the name of the program."""
_DEAD = ("Z", "X", "x")
"""States of a process that has ended and of which only the number is left."""


def identity() -> str:
    """The identity of this process: ``boot/namespace/start``; empty where the system does not say it."""
    try:
        return f"{_machine()}/{_stat('self')[_STARTED]}"
    except (OSError, ValueError, IndexError):
        return ""


def has_ended(pid: int, told: str) -> bool:
    """Whether process ``pid`` with the identity ``told`` is known to have ended.

    False where that cannot be known from here: on another machine, in another container, or where no
    identity was told.
    """
    machine, _, started = told.rpartition("/")
    try:
        if not machine or pid <= 0 or machine != _machine():
            return False
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it lives, and is another user's
    except (OSError, OverflowError):
        return False
    try:
        fields = _stat(str(pid))
        return fields[_STATE] in _DEAD or fields[_STARTED] != started
    except (OSError, ValueError, IndexError):
        return False


def _machine() -> str:
    """The boot of the machine, and the namespace in which processes have the numbers known here."""
    with open(BOOT, encoding="ascii") as file:
        boot = file.read().strip()
    namespace = os.readlink(NAMESPACE)
    return f"{boot}/{namespace[namespace.index('[') + 1 : -1]}"


def _stat(process: str) -> list[str]:
    """The fields of a process, from its state on. The name of its program may hold any sign."""
    with open(f"/proc/{process}/stat", "rb") as file:
        return file.read().decode("ascii", "replace").rpartition(")")[2].split()
