"""A run of pytest is a program like any other: a replay prints the same times and folders."""

from __future__ import annotations

import re
from pathlib import Path

from support.starting.home import Home
from support.starting.inner_pytest import NO_PLUGINS

TESTS = """
import time

def test_slow():
    time.sleep(0.3)

def test_folder(tmp_path):
    print("in", tmp_path.parent.name, tmp_path.name)

def test_wrong():
    assert time.time() < 0
"""


def test_a_replay_of_pytest_prints_what_was_printed(tmp_path: Path):
    # pytest deletes old folders of other runs, of which there are many in a folder that all share.
    environ = {**NO_PLUGINS, "PYTEST_DEBUG_TEMPROOT": str(tmp_path)}
    home = Home(tmp_path, environ)
    home.bare |= environ
    (tmp_path / "test_it.py").write_text(TESTS)
    done = home.playhead(
        "record", "-m", "pytest", "-s", "-p", "no:cacheprovider", "--durations=1", "test_it.py"
    )
    assert done.returncode == 1, done.stderr
    slow = re.search(r"^(\d+\.\d\d)s call .*test_slow$", done.stdout, re.M)
    assert slow is not None and float(slow[1]) >= 0.3
    assert re.search(r"1 failed, 2 passed in ", done.stdout)
    status, report = home.report("last")
    assert report["divergences"] == []
    assert (status, report["verdict"]) == (0, "identical")
