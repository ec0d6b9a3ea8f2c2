"""An agent gives the traceback of a failed tool to its model; a replay sends the same request."""

import pytest
from support.observed.asking import ASKING
from support.starting.home import Home

from playhead_cli.demo.provider import Provider

PROGRAM = """
import traceback, httpx

def fetch():
    httpx.get("http://127.0.0.1:9/")

try:
    fetch()
except httpx.HTTPError:
    print(asked(traceback.format_exc()))
"""


@pytest.mark.parametrize("level", ["exchanges", "strict"])
def test_a_traceback_in_a_prompt_replays(level, tmp_path):
    with Provider(pace_s=0.0) as provider:
        home = Home(tmp_path, provider.environment)
        (home.folder / "agent.py").write_text(ASKING + PROGRAM)
        recorded = home.playhead("record", "--level", level, "agent.py")
        assert recorded.returncode == 0, recorded.stderr
    replayed = home.playhead("replay")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert "tracebacks in requests are compared" in replayed.stdout
    (home.folder / "agent.py").write_text(ASKING + PROGRAM.replace("fetch", "get"))
    assert home.playhead("replay", "--force").returncode in (1, 3)
