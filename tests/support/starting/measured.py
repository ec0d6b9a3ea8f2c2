"""Runs a playhead command in a process of its own and measures output, memory and processor time."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Measured:
    """A finished command."""

    status: int
    out: str
    err: str
    peak_bytes: int
    processor_s: float


def peak_bytes(pid: int) -> int:
    """Peak memory of a process since its program began.

    `getrusage` is not suitable, because it starts from the memory of the parent.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


BESIDE = """
import json, os, resource, subprocess, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
child = subprocess.Popen(sys.argv[3:])
_, status, used = os.wait4(child.pid, 0)
with open(sys.argv[2], "w") as told:
    processor_s = used.ru_utime + used.ru_stime
    json.dump([os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024, processor_s], told)
"""
"""A small process that starts the command, because a child's peak starts from its parent's memory."""


def measured(data_dir: Path, *words: str, limit_bytes: int = 8 << 30) -> Measured:
    """Run ``playhead WORDS``. ``limit_bytes``: address space, so that a failure does no harm."""
    out, err, told = (data_dir.parent / name for name in ("out", "err", "told"))
    command = [sys.executable, "-m", "playhead_cli", "--data-dir", str(data_dir), *words]
    with open(out, "wb") as to, open(err, "wb") as also:
        subprocess.run(
            [sys.executable, "-IS", "-c", BESIDE, str(limit_bytes), str(told), *command],
            stdin=subprocess.DEVNULL,
            stdout=to,
            stderr=also,
            check=True,
        )
    status, peak_bytes, processor_s = json.loads(told.read_text("utf-8"))
    said = [path.read_text(errors="replace") for path in (out, err)]
    return Measured(status, *said, peak_bytes, processor_s)
