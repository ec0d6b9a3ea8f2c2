"""A command of playhead in a process of its own: what it said, how much memory it took, how long."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Measured:
    """A command that has ended."""

    status: int
    out: str
    err: str
    peak_bytes: int
    seconds: float


def measured(data_dir: Path, *words: str, limit_bytes: int = 8 << 30) -> Measured:
    """Run ``playhead WORDS``. ``limit_bytes``: of address space, so that a failure hurts nobody."""
    out, err = data_dir.parent / "out", data_dir.parent / "err"
    began = time.monotonic()
    with open(out, "wb") as to, open(err, "wb") as also:
        child = subprocess.Popen(
            [sys.executable, "-m", "playhead_receiver", "--data-dir", str(data_dir), *words],
            stdin=subprocess.DEVNULL,
            stdout=to,
            stderr=also,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes)),
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    said = [path.read_text(errors="replace") for path in (out, err)]
    return Measured(child.returncode, *said, used.ru_maxrss * 1024, seconds)
