"""Workers of a pool that are ended as soon as their last result is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.starting.home import Home

from playhead_cli.demo.provider import Provider

POOL = """
import multiprocessing

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print(len(pool.map(asked, list("abcdef"), chunksize=1)))
"""


@pytest.mark.parametrize("level", ["exchanges", "causal"])
def test_every_call_of_an_ended_worker_is_whole(tmp_path: Path, level: str):
    (tmp_path / "pool.py").write_text(ASKING + POOL, "utf-8")
    with Provider(pace_s=0.0) as provider:
        home = Home(tmp_path, provider.environment)
        done = home.playhead("record", "--level", level, "pool.py")
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr
    steps = home.run("pool-1").steps
    assert len(steps) == 6
    assert [step.span.name for step in steps if step.span.ended_ns is None] == []
