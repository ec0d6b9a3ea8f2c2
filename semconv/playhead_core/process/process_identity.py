"""Identity of a process among all others of its machine, so that its death is noticed.

A process number is used again after the end of its process. So the identity also has three values of the
Linux kernel: boot id of the machine, namespace of the number, and start time of the process. This module
formats and parses it; callers read the files.
"""

from __future__ import annotations

from typing import Final, NamedTuple

BOOT: Final = "/proc/sys/kernel/random/boot_id"
NAMESPACE: Final = "/proc/self/ns/pid"
"""Files of the boot and, as the target of a link, of the namespace."""

_STATE, _STARTED = 0, 19
"""Indexes of two fields of ``/proc/PID/stat``, counted after the program's name."""
_DEAD = ("Z", "X", "x")


class ProcessStat(NamedTuple):
    """A process as its ``/proc/PID/stat`` shows it."""

    started: str
    """When it started, in clock ticks since the boot."""
    is_dead: bool
    """Whether it has ended, and only its number is left."""


def parse_stat(stat: bytes) -> ProcessStat:
    """Read ``/proc/PID/stat``, where the program's name may contain any character. Raises ValueError."""
    fields = stat.decode("ascii", "replace").rpartition(")")[2].split()
    if len(fields) <= _STARTED:
        raise ValueError("no line of a process")
    return ProcessStat(fields[_STARTED], fields[_STATE] in _DEAD)


def machine(boot: str, namespace: str) -> str:
    """Return the scope of a process number. ``namespace``: the target of the link at `NAMESPACE`."""
    return f"{boot.strip()}/{namespace[namespace.index('[') + 1 : -1]}"


def identity(machine: str, started: str) -> str:
    """Return the identity of a process: ``boot/namespace/start``."""
    return f"{machine}/{started}"


def split_identity(told: str) -> tuple[str, str]:
    """Return machine and start of an identity; both empty if it is not one."""
    machine, slash, started = told.rpartition("/")
    return (machine, started) if slash and machine and started else ("", "")
