"""A run that hung, and was killed: its replay ends, and says where it stands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from support.scripted import Gate, Reply, ScriptedServer, json_reply, openai_chat

from playhead_replay import Run
from playhead_replay.launch import replay
from playhead_replay.tapefile import read_unfinished

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
    done = replay(Run.of_tape(read_unfinished(tape).tape), environ=kept)
    assert done.returncode != 0
    (stands,) = [note for note in done.report.notes if "stands still" in note]
    assert "MainThread waits in Event.wait, called in hangs.py:25 (<module>)" in stands
    # The thread whose question has no answer was refused, and is not among those who wait.
    assert "help_out" not in stands
    assert b"the tape ends before this was answered" in done.stderr
