"""A tool that was called when the run was killed, and is taken to be done."""

from __future__ import annotations

import itertools
import signal
from pathlib import Path

import pytest
from support.long import long
from support.servers.ports import nobody
from support.starting.branching import PATIENCE_S, environment, playhead
from support.starting.running import start_agent

TOOL = """
import {imports}os, signal, sys
import playhead

@playhead.tool(effect="write")
{sync}def note(text):
    with open("notes.txt", "a") as file:
        file.write(text + "\\n")
    if text == "second" and not os.path.exists("again"):
        open("again", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return text

{sync}def main():
    for text in ("first", "second", "third"):
        print({wait}note(text), flush=True)

{run}
"""
SYNC = TOOL.format(imports="", sync="", wait="", run="main()")
ASYNC = TOOL.format(imports="asyncio, ", sync="async ", wait="await ", run="asyncio.run(main())")
THREAD = TOOL.format(
    imports="threading, ",
    sync="",
    wait="",
    run="thread = threading.Thread(target=main)\nthread.start()\nthread.join()",
)
PROGRAMS = {"sync": SYNC, "async": ASYNC, "thread": THREAD}
SHORT = ("async", "strict")


@pytest.mark.parametrize(
    ("program", "level"),
    [how if how == SHORT else long(*how) for how in itertools.product(PROGRAMS, ("causal", "strict"))],
)
def test_it_is_not_called_again_and_the_run_goes_on(tmp_path: Path, program: str, level: str):
    (tmp_path / "agent.py").write_text(PROGRAMS[program])
    environ = environment(tmp_path, nobody(), PLAYHEAD_LEVEL=level)
    agent = start_agent(str(tmp_path / "agent.py"), environ=environ, cwd=tmp_path)
    assert agent.wait(PATIENCE_S) == -signal.SIGKILL
    refused = playhead("resume", environ=environ, cwd=tmp_path)
    assert refused.returncode == 2, refused.stderr
    assert "was sent and not answered" in refused.stderr
    done = playhead("resume", "--on-unknown", "skip", environ=environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["None", "third"]
    assert (tmp_path / "notes.txt").read_text() == "first\nsecond\nthird\n"
