"""A resume keeps the agent's name, and names what is different around the program."""

import os
import signal
from pathlib import Path

from support.starting.home import Home

AGENT = """
import os
import sys

print(os.getpid(), open("rules.txt").read(), os.environ["SMALL_MODEL"], os.environ["REGION"], flush=True)
sys.stdin.readline()
print("end")
"""


def test_a_resume_names_what_is_different_and_keeps_the_name(tmp_path: Path):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "rules.txt").write_text("old")
    home = Home(tmp_path, {"SMALL_MODEL": "one", "REGION": "eu"})
    named = {**home.environ, "OTEL_SERVICE_NAME": "refunds"}
    with home.start("record", "--level", "causal", "agent.py", env=named) as recording:
        assert recording.stdout is not None
        os.kill(int(recording.stdout.readline().split()[0]), signal.SIGKILL)
    (tmp_path / "rules.txt").write_text("new")
    changed = {**home.environ, "SMALL_MODEL": "two", "REGION": "us"}
    done = home.playhead("resume", env=changed)
    assert done.returncode == 0, done.stderr
    assert "refunds-2 success" in done.stderr
    assert done.stderr.splitlines()[:3] == [
        "playhead: SMALL_MODEL has another value here: the program gets the recorded 'one'",
        "playhead: the program reads REGION: not on the tape, so the local values are used",
        f"playhead: {tmp_path}/rules.txt has changed since the run read it",
    ]
