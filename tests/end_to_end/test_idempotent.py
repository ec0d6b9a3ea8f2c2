"""A program is killed and goes on, or is run again: each effect is done once, or said to be unknown."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from threading import Timer

import pytest
from support.long import long
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.branching import PATIENCE_S, environment, playhead, stored
from support.starting.running import run_agent, start_agent

from playhead_semconv import attributes as a
from playhead_semconv import events as e

STEPS = 12
AGENT = "refunds.py"


def answer(request: Request) -> Reply:
    said = request.json["messages"][-1]["content"].split()[0]
    return json_reply(openai_chat.completion(f"refund {said}"))


def refunded(request: Request) -> Reply:
    return json_reply({"receipt": f"receipt of {request.json['order']}"})


class Killer:
    """Kills the agent when a random request has come, or a little later."""

    def __init__(self, draws: random.Random) -> None:
        self.agent: Future[subprocess.Popen[bytes]] = Future()
        self._left = draws.randrange(1, 2 * STEPS)
        self._after_s = draws.choice((0.0, draws.uniform(0, 0.01)))

    def strikes(self, request: Request) -> bool:
        agent = self.agent.result(PATIENCE_S)
        self._left -= 1
        if self._left == 0:
            if self._after_s:
                Timer(self._after_s, lambda: agent.send_signal(signal.SIGKILL)).start()
            else:
                agent.send_signal(signal.SIGKILL)
        return False


def orders(provider: ScriptedServer) -> Counter[int]:
    return Counter(one.json["order"] for one in provider.requests if one.path.endswith("/refund"))


def check(work: Path, done: Counter[int]) -> set[int]:
    """Each refund was done once, and the report has its receipt. Returns those it says are unknown."""
    lines = (work / "report.txt").read_text().splitlines()
    receipts = [line.partition(": ")[2] for line in lines]
    unknown = {order for order, receipt in enumerate(receipts) if receipt == "unknown"}
    assert lines == [
        f"{order} refund {order}: {'unknown' if order in unknown else f'receipt of {order}'}"
        for order in range(STEPS)
    ]
    assert set(done) >= set(range(STEPS)) - unknown
    assert set(done.values()) == {1}
    assert len(unknown) <= 1
    return unknown


def kill_and_go_on(folder: Path, seed: int, *, resumes: bool) -> set[int]:
    work = folder / "work"
    work.mkdir()
    with ScriptedServer() as provider:
        killer = Killer(random.Random(seed))
        provider.on(killer.strikes, answer)
        provider.on("/v1/chat/completions", answer, repeat=True)
        provider.on("/refund", refunded, repeat=True)
        # The retry of a scheduler is a run of its own under the same name.
        name = {} if resumes else {"PLAYHEAD_LINEAGE": "task-7"}
        environ = environment(folder, provider.url, **name)
        words = str(STEPS), provider.url
        agent = start_agent(AGENT, *words, environ=environ, cwd=work)
        killer.agent.set_result(agent)
        status = agent.wait(PATIENCE_S)
        if status == 0:  # killed when all was done
            return check(work, orders(provider))
        assert status == -signal.SIGKILL
        again(environ, work, words, resumes=resumes)
        return check(work, orders(provider))


def again(environ: Mapping[str, str], work: Path, words: tuple[str, str], *, resumes: bool) -> None:
    if not resumes:
        run_agent(AGENT, *words, environ=environ, cwd=work)
        return
    done = playhead("resume", environ=environ, cwd=work)
    if "has come to its end" not in done.stderr:
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("seed", "resumes"), [(1, True), (3, False)])
def test_a_killed_program_goes_on(tmp_path: Path, seed: int, resumes: bool):
    kill_and_go_on(tmp_path, seed, resumes=resumes)


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(100, 150))
def test_fifty_kills(tmp_path: Path, seed: int):
    kill_and_go_on(tmp_path, seed, resumes=seed % 3 > 0)


def killed_while_asking_the_shop(folder: Path, provider: ScriptedServer, at: int) -> dict[str, str]:
    """A run that dies when its refund of order ``at`` has reached the shop."""
    started: Future[subprocess.Popen[bytes]] = Future()

    def strikes(request: Request) -> bool:
        agent = started.result(PATIENCE_S)
        if request.path == "/refund" and request.json == {"order": at} and agent.poll() is None:
            agent.kill()
            agent.wait(PATIENCE_S)
        return False

    provider.on(strikes, answer)
    provider.on("/v1/chat/completions", answer, repeat=True)
    provider.on("/refund", refunded, repeat=True)
    environ = environment(folder, provider.url)
    (folder / "work").mkdir()
    agent = start_agent(AGENT, str(STEPS), provider.url, environ=environ, cwd=folder / "work")
    started.set_result(agent)
    assert agent.wait(PATIENCE_S) == -signal.SIGKILL
    return environ


def outcomes(folder: Path) -> list[str]:
    with stored(folder, "last") as (run,):
        facts = [fact for tape in run.tapes for fact in tape.facts()]
    ends = [fact.attributes for fact in facts if fact.name == e.PLAYHEAD_EXCHANGE_END]
    return [one[a.PLAYHEAD_IDEMPOTENT_OUTCOME] for one in ends if a.PLAYHEAD_IDEMPOTENT_OUTCOME in one]


@pytest.mark.parametrize(
    ("words", "times", "receipt", "outcome"),
    [
        long((), 1, "unknown", "unknown"),
        long(("--on-unknown", "skip"), 1, "None", "skipped"),
        (("--on-unknown", "resend"), 2, "receipt of 4", "again"),
    ],
)
def test_a_person_decides_what_nobody_knows(tmp_path: Path, words, times, receipt, outcome):
    with ScriptedServer() as provider:
        environ = killed_while_asking_the_shop(tmp_path, provider, 4)
        done = playhead("resume", *words, environ=environ, cwd=tmp_path / "work")
        assert done.returncode == 0, done.stderr
        assert orders(provider)[4] == times
    line = (tmp_path / "work" / "report.txt").read_text().splitlines()[4]
    assert line == f"4 refund 4: {receipt}"
    assert outcomes(tmp_path) == [outcome] + ["performed"] * (STEPS - 5)


def test_a_fork_does_not_repeat_what_its_origin_did_behind_the_step(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        provider.on("/refund", refunded, repeat=True)
        environ = environment(tmp_path, provider.url)
        run_agent(AGENT, "3", provider.url, environ=environ, cwd=work)
        for run in ("last:1", "last:1"):  # a fork, and a fork of that
            done = playhead(
                "fork", run, "--edit", "request.model=gpt-5.5-mini", environ=environ, cwd=work
            )
            assert done.returncode == 0, done.stderr
            assert outcomes(tmp_path) == ["given"] * 3
        assert orders(provider) == {0: 1, 1: 1, 2: 1}
        assert "done once: given" in playhead("show", "last:2", environ=environ, cwd=work).stdout
        for run in ("last", "last", "last"):  # with the origin, its claims are deleted
            done = playhead("delete", run, "--yes", environ=environ, cwd=work)
            assert done.returncode == 0, done.stderr
        with sqlite3.connect(tmp_path / "data" / "claims.sqlite") as claims:
            assert claims.execute("SELECT * FROM claim").fetchall() == []
        claims.close()
        models = [one.json["model"] for one in provider.requests if "model" in (one.json or {})]
    assert json.dumps(models).count("gpt-5.5-mini") == 2
