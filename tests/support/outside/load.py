"""Processors that others use."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

SPIN = "while True: pass"


@contextmanager
def busy_processors() -> Generator[None]:
    """Meanwhile, each processor has another process that never rests."""
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for one in spinning:
            one.kill()
            one.wait()
