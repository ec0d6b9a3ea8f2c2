"""WebSockets over older versions of the library, each in a folder of its own (`make venv`)."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[3]
APART = Path(sys.prefix, "apart-websockets")
VERSIONS = ("13.1", "14.2", "15.0.1", "16.1.1")
LEVELS = ("exchanges", "causal", "strict")


def seen(version, level):
    path = os.pathsep.join([str(APART / version), str(TESTS)])
    done = subprocess.run(
        [sys.executable, "-m", "support.observed.old_websockets", level],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


SHORT = [(version, "strict") for version in VERSIONS] + [(VERSIONS[0], "exchanges")]
OTHERS = [
    pytest.param(*how, marks=pytest.mark.acceptance)
    for how in itertools.product(VERSIONS, LEVELS)
    if how not in SHORT
]


@pytest.mark.parametrize(("version", "level"), [*SHORT, *OTHERS])
def test_seen_recorded_and_replayed(version, level):
    alone, recorded, replayed, ended, serving_alone, serving = seen(version, level)
    assert alone[0] == version
    assert recorded == alone
    assert replayed == recorded
    assert len(ended) == 8, ended
    assert serving == serving_alone == ["to myself", ["InvalidStatus", serving[1][1]]]
