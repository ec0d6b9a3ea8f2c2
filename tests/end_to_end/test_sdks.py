"""A program that asks through an SDK, each case once: recorded, and replayed with the provider gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.home import Home
from support.scripted import ScriptedServer
from support.sdk_table import APART, SDKS, replies, surroundings
from support.sdks import program

PROGRAM = Path(program.__file__)
ONE = "ollama"
"""The SDK that every run of the suite has; the others are for acceptance."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("level", ["exchanges", "strict"])
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[] if one == ONE else [pytest.mark.acceptance]) for one in SDKS]
)
def test_a_recorded_program_replays_identical(tmp_path: Path, name: str, level: str):
    sdk = SDKS[name]
    home = Home(tmp_path, {})
    for environ in (home.environ, home.bare):
        environ.update(surroundings(tmp_path))
    with ScriptedServer() as server:
        for case in sdk.cases:
            server.script(replies(sdk, case))
        done = home.playhead(
            "record", "--level", level, PROGRAM, server.url, APART, sdk.adapter, *sdk.cases
        )
    assert done.returncode == 0, done.stderr
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == sdk.cases
    home.playhead("rederive")
    (run,) = home.runs()
    assert (run["steps"], run["models"]) == (len(sdk.cases), ["m-1"])
    status, report = home.report("last")
    assert report["divergences"] == []
    assert (status, report["verdict"], report["level"]) == (0, "identical", level)
