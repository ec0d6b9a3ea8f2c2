"""What tells a process from every other on its machine, so that its death is noticed at once.

A process number is used again after the end of its process. So a process is told by three values of the
Linux kernel, too: the boot of the machine, the namespace of the number, and when the process started.
Here they are put together and taken apart; who writes and who compares them reads the files.
"""

from __future__ import annotations

from typing import Final, NamedTuple

BOOT: Final = "/proc/sys/kernel/random/boot_id"
NAMESPACE: Final = "/proc/self/ns/pid"
"""Files of the boot and, as the target of a link, of the namespace."""

_STATE, _STARTED = 0, 19
"""Places of two fields of ``/proc/PID/stat`` behind the name of the program."""
_DEAD = ("Z", "X", "x")


class ProcessStat(NamedTuple):
    """A process as its ``/proc/PID/stat`` shows it."""

    started: str
    """When it started, in clock ticks since the boot."""
    is_dead: bool
    """Whether it has ended, and only its number is left."""


def parse_stat(stat: bytes) -> ProcessStat:
    """Read ``/proc/PID/stat``, where the program's name may hold any sign. ValueError: it is none."""
    fields = stat.decode("ascii", "replace").rpartition(")")[2].split()
    if len(fields) <= _STARTED:
        raise ValueError("no line of a process")
    return ProcessStat(fields[_STARTED], fields[_STATE] in _DEAD)


def machine(boot: str, namespace: str) -> str:
    """Where a process number has its meaning. ``namespace``: the target of the link at `NAMESPACE`."""
    return f"{boot.strip()}/{namespace[namespace.index('[') + 1 : -1]}"


def identity(machine: str, started: str) -> str:
    """The identity of a process: ``boot/namespace/start``."""
    return f"{machine}/{started}"


def split_identity(told: str) -> tuple[str, str]:
    """The machine and the start of an identity; both empty if it is none."""
    machine, slash, started = told.rpartition("/")
    return (machine, started) if slash and machine and started else ("", "")
