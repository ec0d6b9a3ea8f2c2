"""A child process without a network, where the kernel allows it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

PROBE_TIMEOUT_S = 5.0


@functools.cache
def no_network() -> tuple[str, ...]:
    """Words to put before a command so that it has no network at all; empty where that is not possible.

    Linux namespaces through util-linux's ``unshare``: a network namespace whose loopback stays down,
    inside a user namespace that keeps the user's own id where one is needed.
    """
    program = shutil.which("unshare") if sys.platform == "linux" else None
    if program is None:
        return ()
    with_user = (program, "--user", "--map-current-user", "--net", "--")
    tries = [(program, "--net", "--"), with_user] if os.geteuid() == 0 else [with_user]
    for prefix in tries:
        if _works([*prefix, sys.executable, "-S", "-c", ""]):
            return prefix
    return ()


def _works(command: Sequence[str]) -> bool:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
