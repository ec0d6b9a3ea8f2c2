"""Finds out whether a process of this machine is alive."""

from __future__ import annotations

import os

from playhead_core.process.process_identity import BOOT, NAMESPACE, machine, parse_stat, split_identity


def lives(pid: int, identity: str) -> bool | None:
    """Whether process ``pid`` with the recorded ``identity`` is alive.

    None if that cannot be known from here: on another machine, in another container, or without an
    identity.
    """
    place, started = split_identity(identity)
    try:
        if not place or pid <= 0 or place != _here():
            return None
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it lives, and is another user's
    except (OSError, OverflowError, ValueError):
        return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            seen = parse_stat(file.read())
    except (OSError, ValueError):
        return None
    return not seen.is_dead and seen.started == started


def _here() -> str:
    with open(BOOT, encoding="ascii") as file:
        return machine(file.read(), os.readlink(NAMESPACE))
