"""The identity of this process on its machine."""

from __future__ import annotations

import os

from playhead_core.process.process_identity import BOOT, NAMESPACE, identity, machine, parse_stat
from playhead_instrumentation.patching import lanes

STAT = "/proc/self/stat"


def own_identity() -> str:
    """``boot/namespace/start``; empty where the system does not say it."""
    with lanes.Shadow():  # the files of the system that it reads are not the program's
        try:
            with open(BOOT, encoding="ascii") as boot, open(STAT, "rb") as stat:
                place = machine(boot.read(), os.readlink(NAMESPACE))
                return identity(place, parse_stat(stat.read()).started)
        except (OSError, ValueError):
            return ""
