"""A run that listens is killed and resumed: what it had heard is played, then it goes on listening."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.branching import PATIENCE_S, environment, stored
from support.starting.running import start_agent

AGENT = f"""
import sys
{ASKING}
for line in sys.stdin:
    print(asked(line.strip()), flush=True)
print("the end")
"""
LINES = [f"line {number} {'x' * 3000}" for number in range(9)]


def question(request: Request) -> str:
    text: str = request.json["messages"][-1]["content"]
    return text


@dataclass
class Listening:
    folder: Path
    provider: ScriptedServer
    environ: dict[str, str]

    def run_until(self, text: str, given: Path) -> None:
        started: Future[subprocess.Popen[bytes]] = Future()

        def strikes(request: Request) -> bool:
            agent = started.result(PATIENCE_S)
            if question(request).startswith(text) and agent.returncode is None:
                agent.send_signal(signal.SIGKILL)
                agent.wait(PATIENCE_S)
            return False

        def answer(request: Request) -> Reply:
            return json_reply(openai_chat.completion(f"to {question(request)[:6]}"))

        self.provider.on(strikes, answer)
        self.provider.on("/v1/chat/completions", answer, repeat=True)
        with given.open() as stdin:
            agent = start_agent(
                str(self.folder / "agent.py"),
                environ={**self.environ, "PLAYHEAD_QUIET": "1"},
                cwd=self.folder,
                stdin=stdin,
            )
            started.set_result(agent)
            assert agent.wait(PATIENCE_S) == -signal.SIGKILL

    def resume(self, **stdin: Any) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "playhead_cli", "resume", "--on-unknown", "resend"]
        given: dict[str, Any] = {"env": self.environ, "cwd": self.folder, "timeout": PATIENCE_S, **stdin}
        return subprocess.run(words, capture_output=True, text=True, **given)


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Listening]:
    work = tmp_path / "work"
    work.mkdir()
    (work / "agent.py").write_text(AGENT)
    (work / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    with ScriptedServer() as provider:
        environ = environment(tmp_path, provider.url)
        environ.pop("PLAYHEAD_QUIET")
        yield Listening(work, provider, environ)


def test_the_same_file_is_read_on_from_where_it_was(listening: Listening):
    lines = listening.folder / "lines.txt"
    listening.run_until("line 3", lines)
    with lines.open() as stdin:
        done = listening.resume(stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "the end"
    assert [question(one) for one in listening.provider.requests] == [*LINES[:4], *LINES[3:]]
    with stored(listening.folder.parent, "last") as [resumed]:
        [heard] = [one for one in resumed.exchanges if one.exchange.id.kind == "stdin"]
        assert heard.response == lines.read_bytes()


def test_what_is_said_now_goes_on_from_what_was_said_then(listening: Listening):
    lines = listening.folder / "lines.txt"
    listening.run_until("line 1", lines)
    done = listening.resume(input="more\n")
    assert done.returncode == 0, done.stderr
    asked = [question(one) for one in listening.provider.requests]
    assert asked[:3] == [LINES[0], LINES[1], LINES[1]]
    # Python reads ahead: of the last line that it had, what is said now is the rest.
    assert asked[-1].endswith("more")
    assert done.stdout.splitlines()[-1] == "the end"
