"""SIGKILL of the receiver under load: what it acknowledged is there, and the agents deliver the rest."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.servers import ports
from support.servers.scripted import Request, ScriptedServer, openai_chat, sse, sse_reply
from support.starting.running import (
    PATIENCE_S,
    agent_environment,
    instances,
    push_leftovers,
    start_agent,
    until,
    whole_tape,
)
from support.starting.warm import Process

from playhead_receiver.storage import Query, open_store
from playhead_receiver.system.writer_lock import running as listening

AGENTS = 3
STEPS = 60


def answer(_: Request):
    whole = openai_chat.completion(" ".join(f"word{n}" for n in range(20)))
    return sse_reply(sse.chat(openai_chat.chunks(whole)))


def start_receiver(data_dir: Path, port: int) -> subprocess.Popen[bytes]:
    words = ["-m", "playhead_cli", "up", "--data-dir", str(data_dir), "--http-port", str(port)]
    child = Process(
        [sys.executable, *words, "--grpc-port", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    until(lambda: child.poll() is not None or listening(data_dir), "the receiver listens")
    assert child.poll() is None, child.stderr.read() if child.stderr else ""
    return child


def kill_receivers(folder: Path, seed: int, kills: int) -> None:
    """Agents work while their receiver is killed and started again, ``kills`` times."""
    chance = random.Random(seed)
    port, data_dir, spool = ports.free(), folder / "data", folder / "spool"
    logs = [folder / f"log{n}.txt" for n in range(AGENTS)]

    def lines() -> int:
        return sum(log.read_bytes().count(b"\n") for log in logs if log.exists())

    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        environ = agent_environment(f"http://127.0.0.1:{port}", spool, provider.url)
        receiver = start_receiver(data_dir, port)
        agents = [
            start_agent("streaming.py", str(log), str(STEPS), environ=environ, cwd=folder)
            for log in logs
        ]
        total = AGENTS * STEPS * 21
        for mark in sorted(chance.sample(range(10, int(total * 0.9)), kills)):
            until(lambda mark=mark: lines() >= mark, "the agents go on")
            receiver.send_signal(signal.SIGKILL)
            receiver.wait()
            receiver = start_receiver(data_dir, port)
        for agent in agents:
            assert agent.wait(PATIENCE_S) == 0
        push_leftovers(environ)
        receiver.send_signal(signal.SIGTERM)
        assert receiver.wait(PATIENCE_S) == 0

    store = open_store(data_dir, read_only=True)
    try:
        runs = list(store.runs(Query()))
        assert [run.status for run in runs] == ["success"] * AGENTS
        assert [run.steps for run in runs] == [STEPS] * AGENTS
        found = instances(store)
        assert len(found) == AGENTS
        for instance in found:
            exchanges = list(whole_tape(store, instance).exchanges().values())
            assert len(exchanges) == STEPS
            assert {one.end.how for one in exchanges if one.end} <= {"complete", "abandoned"}
        for run in runs:
            # A root, and for each step a logical call and its attempt.
            spans = [span.span_id for span in store.spans(bytes.fromhex(run.trace_id))]
            assert len(set(spans)) == len(spans) == 1 + 2 * STEPS
    finally:
        store.close()


def test_nothing_is_lost_when_the_receiver_is_killed(tmp_path: Path):
    kill_receivers(tmp_path, seed=1, kills=3)


@pytest.mark.acceptance
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(5))
def test_twenty_kills(tmp_path: Path, seed: int):
    kill_receivers(tmp_path, seed=100 + seed, kills=4)
