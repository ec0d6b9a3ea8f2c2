"""A child process that the kernel keeps from the network and from changing files, where it can."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROBE_TIMEOUT_S = 10.0

SCRIPT = Path(__file__).with_name("isolated.py")


def isolated(scratch: Path, said: Path, *, network: bool, files: bool, wait_s: float = 0.0) -> list[str]:
    """Words to put before a command; empty on another system than Linux.

    The command dies with this process. ``network``: it has none. ``files``: it can change none outside
    of ``scratch``, and reaches no other process; what it has started may outlive it for ``wait_s``.
    What of this the kernel could enforce, `enforced` reads from ``said`` later.
    """
    if sys.platform != "linux":
        return []
    asked = options(scratch, said, parent=os.getpid(), network=network, files=files)
    asked += ["--wait", str(wait_s)]
    return [sys.executable, "-I", "-S", str(SCRIPT), *asked, "--"]


def options(scratch: Path, said: Path, *, parent: int, network: bool, files: bool) -> list[str]:
    """The same for a process that is there already (`isolated.enter`) and dies with ``parent``."""
    if sys.platform != "linux":
        return []
    words = ["--parent", str(parent), "--said", str(said)]
    words += ["--network", "none"] if network else []
    return [*words, *(["--scratch", str(scratch)] if files else [])]


def enforced(said: Path) -> frozenset[str]:
    """What the kernel enforces: ``network``, ``files``, ``processes``."""
    try:
        return frozenset(said.read_text("utf-8").split())
    except OSError:
        return frozenset()


@functools.cache
def enforceable() -> frozenset[str]:
    """What the kernel would enforce here."""
    with tempfile.TemporaryDirectory(prefix="playhead-probe-") as folder:
        scratch, said = Path(folder), Path(folder, "said")
        try:
            subprocess.run(
                [
                    *isolated(scratch, said, network=True, files=True),
                    sys.executable,
                    "-I",
                    "-S",
                    "-c",
                    "",
                ],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=PROBE_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired):
            return frozenset()
        return enforced(said)
