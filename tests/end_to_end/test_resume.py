"""A run that was killed is brought to its end: nothing of its first part happens again."""

from __future__ import annotations

import random
import signal
import subprocess
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer

import pytest
from support.long import long
from support.servers.scripted import Reply, Request, ScriptedServer, chat_sse, json_reply, openai_chat
from support.starting.branching import PATIENCE_S, environment, playhead
from support.starting.running import start_agent

from playhead_receiver.storage import open_store
from playhead_replay import Run
from playhead_replay.forks.outcome import ForkOutcome

STEPS = 30


def said(request: Request) -> str:
    """The answer to a request: it follows from the request alone."""
    messages = request.json["messages"]
    return f"answer to {messages[-1]['content'].split()[0]} of {len(messages)}"


def answer(request: Request) -> Reply:
    whole = openai_chat.completion(said(request))
    return chat_sse(whole) if request.json.get("stream") else json_reply(whole)


@dataclass
class Ran:
    """What a program left behind."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    requests: Counter[bytes] = field(default_factory=Counter[bytes])


def left_by(folder: Path, requests: list[Request]) -> Ran:
    names = ("notes.txt", "log.txt", "state.json")
    found = {name: (folder / name).read_text() for name in names if (folder / name).exists()}
    return Ran(found, Counter(one.body for one in requests))


class Killer:
    """Kills the agent a random while after a random request has come, before its last is answered."""

    def __init__(self, draws: random.Random) -> None:
        self.agent: Future[subprocess.Popen[bytes]] = Future()
        self._asked = 0
        self._at = draws.randrange(1, STEPS - 2)
        self._after_s = draws.choice((0.0, draws.uniform(0, 0.02)))

    def strikes(self, request: Request) -> bool:
        """Never the answer: but at that request, the agent is dead, or will be soon."""
        agent = self.agent.result(PATIENCE_S)
        self._asked += 1
        if self._asked == self._at:
            Timer(self._after_s, lambda: agent.send_signal(signal.SIGKILL)).start()
        elif self._asked == STEPS:
            agent.wait(PATIENCE_S)
        return False


def wrote_what_it_did_not_say(data: Path, before: Ran) -> bool:
    """Whether the call of the tool that was not answered has written its line."""
    store = open_store(data, read_only=True)
    try:
        calls = [one for one in Run.load(store, "last").exchanges if one.exchange.id.kind == "tool"]
    finally:
        store.close()
    return before.files.get("notes.txt", "").count("\n") == len(calls)


def kill_and_resume(folder: Path, script: str, seed: int) -> None:
    """Kill the agent at a random moment of its work, resume it, compare with what it is to leave."""
    work = folder / "work"
    work.mkdir()
    with ScriptedServer() as provider:
        level = "strict" if seed % 2 else "causal"
        environ = environment(folder, provider.url, PLAYHEAD_LEVEL=level)
        killer = Killer(random.Random(seed))
        provider.on(killer.strikes, answer)
        provider.on("/v1/chat/completions", answer, repeat=True)
        agent = start_agent(script, str(STEPS), environ=environ, cwd=work)
        killer.agent.set_result(agent)
        assert agent.wait(PATIENCE_S) == -signal.SIGKILL
        before = left_by(work, provider.requests)

        done = playhead("resume", environ=environ, cwd=work)
        if "has come to its end: there is nothing to resume" in done.stderr:
            # Killed when all was done, while the interpreter went away.
            assert sum(before.requests.values()) == STEPS
            return check_files(script, before)
        if done.returncode == 2:
            assert "was sent and not answered" in done.stderr
            how = "skip" if wrote_what_it_did_not_say(folder / "data", before) else "resend"
            done = playhead("resume", "--on-unknown", how, environ=environ, cwd=work)
        assert done.returncode == 0, done.stderr
        after = left_by(work, provider.requests)

    store = open_store(folder / "data", read_only=True)
    try:
        resumed, dead = (Run.load(store, name) for name in ("last", "last-1"))
        outcome = ForkOutcome.of(resumed)
    finally:
        store.close()
    assert resumed.mode == "resume"
    assert resumed.origin.startswith(dead.trace_id)
    assert resumed.status == "success"
    assert outcome.blocked == []
    # What was answered is not asked again; what was not is, and only that.
    open_requests = [one for one in dead.exchanges if one.exchange.end is None]
    again = [body for body, count in after.requests.items() if count > 1]
    assert len(again) <= len(open_requests), done.stderr
    assert sum(after.requests.values()) == STEPS + len(again), done.stderr
    assert before.requests <= after.requests
    check_files(script, after)
    # The run is as whole as one that was not killed.
    assert len(resumed.steps) == (STEPS * 2 if script == "thirty.py" else STEPS + STEPS // 3)
    assert [resumed.messages(step).output for step in resumed.steps if "chat" in step.span.name]


def check_files(script: str, after: Ran) -> None:
    notes = after.files["notes.txt"].splitlines()
    if script == "thirty.py":
        assert notes == [f"note {step}" for step in range(STEPS)]
        log = [f"{step} answer to step of {2 * step + 2}" for step in range(STEPS)]
        assert after.files["log.txt"].splitlines() == log
        assert f'"step": {STEPS - 1}' in after.files["state.json"]
        return
    assert notes == [f"note {step}" for step in range(0, STEPS, 3)]
    log = [
        f"{step} {[f'answer to {step} of 1', f'answer to {step + 1} of 1']} {{}} "
        f"answer to {step + 2} of 1"
        for step in range(0, STEPS, 3)
    ]
    for number, line in enumerate(after.files["log.txt"].splitlines()):
        # What a call has returned that was done and not answered, nobody knows.
        assert line in (log[number].format(number + 1), log[number].format(None))
    assert len(after.files["log.txt"].splitlines()) == len(log)


@pytest.mark.parametrize("script", ["thirty.py", long("thirty_async.py")])
@pytest.mark.parametrize("seed", [1])
def test_a_killed_run_comes_to_its_end(tmp_path: Path, script: str, seed: int):
    kill_and_resume(tmp_path, script, seed)


@pytest.mark.acceptance
@pytest.mark.parametrize("script", ["thirty.py", "thirty_async.py"])
@pytest.mark.parametrize("seed", range(100, 150))
def test_fifty_kills(tmp_path: Path, script: str, seed: int):
    kill_and_resume(tmp_path, script, seed)
