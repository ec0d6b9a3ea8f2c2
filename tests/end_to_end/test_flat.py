"""However many calls there are, with nobody to take the record: memory and descriptors stay flat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from playhead_core.boundaries import LEVELS

AGENT = Path(__file__).parent / "agents" / "many_calls.py"
BUDGET_BYTES = 4 << 20
HEADS = 32
"""Mapped heads of 1 MiB, each with its descriptor, that may wait for the disk: `spool-memory-bytes`."""


def check(level: str, calls: int, folder: Path) -> None:
    """Nobody listens, and the disk budget is soon used up."""
    done = subprocess.run(
        [Path(sys.executable).with_name("opentelemetry-instrument"), sys.executable, AGENT, str(calls)],
        env={
            **os.environ,
            "PLAYHEAD_LEVEL": level,
            "PLAYHEAD_ENDPOINT": "http://127.0.0.1:9",
            "PLAYHEAD_SPOOL_DIR": str(folder / "spool"),
            "PLAYHEAD_SPOOL_BUDGET_BYTES": str(BUDGET_BYTES),
        },
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    # The first tenth loads what is loaded late.
    _, second, *_, last = said
    assert last[0] - second[0] < 4096, f"KiB of memory, descriptors, objects: {said}"
    assert last[1] - second[1] <= HEADS, f"KiB of memory, descriptors, objects: {said}"
    assert last[2] - second[2] < 2000, f"KiB of memory, descriptors, objects: {said}"
    kept = sum(path.stat().st_size for path in (folder / "spool").rglob("*.tape"))
    assert kept <= BUDGET_BYTES + (1 << 20)


@pytest.mark.acceptance
def test_over_three_thousand_calls(tmp_path):
    check("exchanges", 3_000, tmp_path)


@pytest.mark.acceptance
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("level", LEVELS)
def test_over_a_hundred_thousand_calls(level, tmp_path):
    check(level, 100_000, tmp_path)
