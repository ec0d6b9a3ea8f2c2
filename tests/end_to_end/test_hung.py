"""A run that hung, and was killed: its replay ends, and says where it stands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from support.servers.scripted import Gate, Reply, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

from playhead_replay import Environment, ReplayConfiguration, Replayer, Run
from playhead_replay.tape_files.tape_file import read_unfinished

SLEEPS = """
import subprocess, sys
words = "import sys, time; print('ready', file=sys.stderr, flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", words], stderr=subprocess.PIPE, text=True)
print(next(line for line in child.stderr if "ready" in line).strip())
child.terminate()
print(child.communicate(), child.returncode)
"""

POLLS = """
import time
while True:
    print("asked", flush=True)
    time.sleep(0.5)
"""

AGENT = Path(__file__).parent / "agents" / "hangs.py"


def test_where_nobody_goes_on_the_replay_ends_and_names_who_waits_for_what(tmp_path: Path):
    tape = tmp_path / "hung.tape"
    never = Gate()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PLAYHEAD_")}
    with ScriptedServer() as provider:
        provider.on(
            lambda request: b"first" in request.body,
            json_reply(openai_chat.completion("one")),
        )
        provider.on(lambda request: b"second" in request.body, Reply(before=never))
        agent = subprocess.Popen(
            [sys.executable, "-m", "playhead_instrumentation", "record", "--tape", tape, AGENT],
            env={**kept, "OPENAI_BASE_URL": f"{provider.url}/v1", "PLAYHEAD_QUIET": "1"},
            cwd=tmp_path,
        )
        never.wait_reached()
        agent.send_signal(signal.SIGKILL)
        agent.wait()
    around = Environment(environ=kept)
    done = Replayer(ReplayConfiguration(around)).replay(Run.of_tape(read_unfinished(tape).tape))
    assert done.returncode != 0
    (stands,) = [note for note in done.report.notes if "the replay was stopped" in note]
    assert "MainThread waits in Event.wait, called in hangs.py:25 (<module>)" in stands
    # The thread whose question has no answer was refused, and is not among those who wait.
    assert "help_out" not in stands
    assert b"the tape ends before this was answered" in done.stderr


def test_a_child_that_was_killed_in_its_sleep_sleeps_no_longer_than_its_tape(tmp_path: Path):
    home = Home(tmp_path, {})
    script = tmp_path / "agent.py"
    script.write_text(SLEEPS, "utf-8")
    assert home.playhead("record", script).returncode == 0
    status, report = home.report("last")
    assert (status, report["verdict"], len(report["processes"])) == (0, "identical", 2)


def test_a_run_that_was_killed_while_it_polls_ends_where_its_tape_does(tmp_path: Path):
    script, tape = tmp_path / "agent.py", tmp_path / "polls.tape"
    script.write_text(POLLS, "utf-8")
    words = [sys.executable, "-m", "playhead_instrumentation", "record", "--tape", tape, script]
    environ = {**os.environ, "PLAYHEAD_QUIET": "1", "PLAYHEAD_LEVEL": "strict"}
    with subprocess.Popen(words, env=environ, cwd=tmp_path, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        for _ in range(3):
            agent.stdout.readline()
        agent.kill()
        said = 3 + len(agent.stdout.readlines())
    done = Replayer().replay(Run.of_tape(read_unfinished(tape).tape))
    assert done.stdout.count(b"asked") in (said, said + 1)
    assert any("MainThread is in agent.py:5" in note for note in done.report.notes), done.report.notes
