"""Which processes that ran on this machine have ended."""

from __future__ import annotations

import os

from playhead_semconv.process.process_identity import BOOT, NAMESPACE, machine, seen_in, split


def has_ended(pid: int, told: str) -> bool:
    """Whether process ``pid`` with the identity ``told`` is known to have ended.

    False where that cannot be known from here: on another machine, in another container, or where no
    identity was told.
    """
    place, started = split(told)
    try:
        if not place or pid <= 0 or place != _here():
            return False
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it lives, and is another user's
    except (OSError, OverflowError, ValueError):
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            seen = seen_in(file.read())
    except (OSError, ValueError):
        return False
    return seen.is_dead or seen.started != started


def _here() -> str:
    with open(BOOT, encoding="ascii") as file:
        return machine(file.read(), os.readlink(NAMESPACE))
