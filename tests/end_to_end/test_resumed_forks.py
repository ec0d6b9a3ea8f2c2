"""A run that forked processes is killed and resumed: each process goes on from its own tape."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.branching import PATIENCE_S, environment, playhead, stored
from support.starting.running import run_agent, start_agent

AGENT = f"""
import multiprocessing
{ASKING}
def work(number, queue):
    queue.put(asked(f"worker {{number}}, {{asked(f'warm up {{number}}')}}"))

print(asked("first"), flush=True)
reading, writing = os.pipe()
child = os.fork()
if not child:
    os.write(writing, asked("child").encode())
    os._exit(0)
os.close(writing)
said = os.read(reading, 1000).decode()
os.waitpid(child, 0)
print(said, flush=True)
forks = multiprocessing.get_context("fork")
queue = forks.Queue()
worker = forks.Process(target=work, args=(1, queue))
worker.start()
print(queue.get(), flush=True)
worker.join()
for number in range(3):
    print(asked(f"last {{number}} {{said}}"), flush=True)
"""
ASKED = [
    "first",
    "child",
    "warm up 1",
    "worker 1, to warm up 1",
    *(f"last {number} to child" for number in range(3)),
]

SPAWNS = f"""
import multiprocessing
{ASKING}
def ask(text):
    print(asked(text), flush=True)

if __name__ == "__main__":
    ask("first")
    worker = multiprocessing.get_context("spawn").Process(target=ask, args=("worker 1",))
    worker.start()
    worker.join()
"""


def question(request: Request) -> str:
    text: str = request.json["messages"][-1]["content"]
    return text


def answer(request: Request) -> Reply:
    return json_reply(openai_chat.completion(f"to {question(request)}"))


@dataclass
class Killed:
    folder: Path
    provider: ScriptedServer
    environ: dict[str, str]

    def run_until(self, text: str) -> None:
        """Run the agent; at the request that begins so, all its processes are killed."""
        started: Future[subprocess.Popen[bytes]] = Future()

        def strikes(request: Request) -> bool:
            agent = started.result(PATIENCE_S)
            if question(request).startswith(text) and agent.returncode is None:
                os.killpg(agent.pid, signal.SIGKILL)
                agent.wait(PATIENCE_S)
            return False

        self.provider.on(strikes, answer)
        self.provider.on("/v1/chat/completions", answer, repeat=True)
        script = str(self.folder / "agent.py")
        agent = start_agent(
            script,
            environ={**self.environ, "PLAYHEAD_QUIET": "1"},
            cwd=self.folder,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
        )
        started.set_result(agent)
        assert agent.wait(PATIENCE_S) == -signal.SIGKILL


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Killed]:
    work = tmp_path / "work"
    work.mkdir()
    (work / "agent.py").write_text(AGENT)
    with ScriptedServer() as provider:
        environ = environment(tmp_path, provider.url)
        environ.pop("PLAYHEAD_QUIET")
        yield Killed(work, provider, environ)


def test_what_was_forked_is_played_from_its_own_tape(killed: Killed):
    at = "last 1"
    killed.run_until(at)
    words = "resume", "--on-unknown", "resend"
    done = playhead(*words, environ=killed.environ, cwd=killed.folder)
    assert done.returncode == 0, done.stderr
    asked = [question(request) for request in killed.provider.requests]
    # What was open when it died is asked once more, and nothing else.
    [again] = [text for text in ASKED if text.startswith(at)]
    where = ASKED.index(again)
    assert asked == [*ASKED[: where + 1], *ASKED[where:]]
    assert done.stdout.splitlines()[-1] == "to last 2 to child"
    with stored(killed.folder.parent, "last", "last-1") as [resumed, dead]:
        assert (resumed.mode, resumed.status) == ("resume", "success")
        assert resumed.origin.startswith(dead.trace_id)
        bodies = sorted(one.request for one in resumed.exchanges if one.exchange.id.kind == "http")
        assert len(bodies) == len(ASKED)


@pytest.mark.parametrize("at", ["worker 1", "child"])
def test_a_process_that_had_not_ended_is_refused_in_a_sentence(killed: Killed, at: str):
    killed.run_until(at)
    before = len(killed.provider.requests)
    done = playhead("resume", environ=killed.environ, cwd=killed.folder)
    assert done.returncode == 2
    assert "had forked a process that had not ended" in done.stderr
    assert "go on from the last step before it: playhead fork agent-1:" in done.stderr
    assert len(killed.provider.requests) == before


@pytest.mark.parametrize("how", ["ask", "resend"])
def test_a_worker_that_had_not_ended_is_refused_in_a_sentence(killed: Killed, how: str):
    (killed.folder / "agent.py").write_text(SPAWNS)
    killed.run_until("worker 1")
    done = playhead("resume", "--on-unknown", how, environ=killed.environ, cwd=killed.folder)
    assert done.returncode == 2
    assert "had started a worker that had not ended: it does not go on from there" in done.stderr
    assert len(killed.provider.requests) == 2


def test_a_run_that_forked_processes_is_forked_behind_them(killed: Killed):
    killed.provider.on("/v1/chat/completions", answer, repeat=True)
    script = str(killed.folder / "agent.py")
    run_agent(script, environ={**killed.environ, "PLAYHEAD_QUIET": "1"}, cwd=killed.folder)
    asked = [question(one) for one in killed.provider.requests]
    done = playhead("fork", f"agent-1:{len(ASKED)}", environ=killed.environ, cwd=killed.folder)
    assert done.returncode == 0, done.stderr
    assert f"live from step {len(ASKED)}" in done.stderr
    assert [question(one) for one in killed.provider.requests] == [*asked, ASKED[-1]]
    refused = playhead("fork", "agent-1:2", environ=killed.environ, cwd=killed.folder)
    assert refused.returncode == 2
    assert "belongs to another process: a fork cannot begin there" in refused.stderr
