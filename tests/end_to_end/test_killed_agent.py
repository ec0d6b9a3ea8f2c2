"""SIGKILL of the agent: everything that had happened before is in the store, once."""

from __future__ import annotations

import itertools
import random
import re
import signal
import subprocess
from pathlib import Path

import pytest
from support.long import long
from support.observed.asking import ASKING
from support.servers.scripted import (
    Gate,
    Request,
    ScriptedServer,
    json_reply,
    openai_chat,
    sse,
    sse_reply,
)
from support.starting.running import (
    PATIENCE_S,
    agent_environment,
    instances,
    only_run,
    push_leftovers,
    receiver,
    start_agent,
    until,
    whole_tape,
)

from playhead_core.facts import Exchange
from playhead_core.settings import resolve
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_exporter.push import pending
from playhead_receiver.storage import Query

STEPS = 40
WORDS = 25
DELTA = re.compile(rb'"delta":\s*\{[^}]*"content":\s*"([^"]+)"')


def answer(request: Request):
    """A stream of words, one HTTP chunk each. The last never comes: an agent lives until killed."""
    step = len(request.json["messages"]) // 2
    whole = openai_chat.completion(" ".join(f"w{step}.{word}" for word in range(WORDS)))
    return sse_reply(sse.chat(openai_chat.chunks(whole)), before=Gate() if step == STEPS - 1 else None)


def deltas(tape: MemoryTape, exchange: Exchange) -> list[str]:
    body = b"".join(tape.read(part.data) for part in exchange.parts)
    return [found.decode() for found in DELTA.findall(body)]


def kill_once(folder: Path, seed: int) -> None:
    """Kill the agent after a random number of lines of its log; compare log, provider and tape."""
    lines_wanted = random.Random(seed).randrange(1, STEPS * WORDS)
    log = folder / "log.txt"
    with ScriptedServer() as provider, receiver(folder / "data") as running:
        provider.on("/v1/chat/completions", answer, repeat=True)
        environ = agent_environment(running.http_endpoint, folder / "spool", provider.url)
        agent = start_agent("streaming.py", str(log), str(STEPS), environ=environ, cwd=folder)
        until(
            lambda: (
                agent.poll() is not None
                or (log.exists() and log.read_bytes().count(b"\n") >= lines_wanted)
            ),
            "the agent writes its log",
        )
        agent.send_signal(signal.SIGKILL)
        assert agent.wait() == -signal.SIGKILL, "the agent was done before it could be killed"
        sent = len(provider.requests)
        push_leftovers(environ)

        (instance,) = instances(running.store)
        tape = whole_tape(running.store, instance)
        exchanges = list(tape.exchanges().values())
        asked = log.read_text().count("ask ")
        # A request is on the tape before it goes out.
        assert sent <= len(exchanges) <= asked
        assert asked - len(exchanges) <= 1
        got = re.findall(r"^got (.*)$", log.read_text(), re.M)
        recorded = list(itertools.chain.from_iterable(deltas(tape, one) for one in exchanges))
        assert [word.strip() for word in got] == [word.strip() for word in recorded[: len(got)]]
        for exchange in exchanges[:-1]:
            assert exchange.end is not None
            # The SDK stops reading at [DONE], before the end of the body.
            assert exchange.end.how in ("complete", "abandoned")
        run = until(
            lambda: (found := only_run(running.store)).status != "running" and found,
            "the run is known to be dead",
        )
        assert run.status == "interrupted"
        # The last call may have begun without its request being on the tape.
        assert len(exchanges) <= run.steps <= asked
        assert run.missing == []


@pytest.mark.parametrize("seed", [0, long(1)])
def test_nothing_that_had_happened_is_lost_or_doubled(tmp_path: Path, seed: int):
    kill_once(tmp_path, seed)


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(100, 200))
def test_a_hundred_kills(tmp_path: Path, seed: int):
    kill_once(tmp_path, seed)


ENDS_ITSELF = f"""
import signal, sys
from playhead_exporter import tape_exporter
{ASKING}
tape_exporter.FIRST_MEETING_S = tape_exporter.DISK_AT_EXIT_S = 60.0
signal.signal(signal.SIGTERM, lambda number, frame: None)
print(asked("first"))
signal.raise_signal(signal.SIGTERM)
print(asked("second"), flush=True)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.raise_signal(signal.SIGTERM)
"""


@pytest.mark.parametrize("level", ["exchanges", "strict"])
def test_a_program_that_ends_itself_by_a_signal_delivers_first(tmp_path: Path, level: str):
    """As uvicorn does after SIGTERM, so that whoever started it sees how it ended."""
    script = tmp_path / "ends.py"
    script.write_text(ENDS_ITSELF)
    with ScriptedServer() as provider, receiver(tmp_path / "data") as running:
        provider.script([json_reply(openai_chat.completion("yes"))], repeat=True)
        environ = agent_environment(running.http_endpoint, tmp_path / "spool", provider.url)
        environ |= {
            "PLAYHEAD_LEVEL": level,
            "PLAYHEAD_EXIT_FLUSH_MS": "60000",
            "PLAYHEAD_HEARTBEAT_MS": "1",
        }
        agent = start_agent(str(script), environ=environ, cwd=tmp_path, stdout=subprocess.PIPE)
        out, _ = agent.communicate(timeout=PATIENCE_S)
        assert (agent.returncode, out.split()) == (-signal.SIGTERM, [b"yes", b"yes"])
        assert pending(resolve(environ).settings) == []
        (instance,) = instances(running.store)
        tape = whole_tape(running.store, instance)
        assert [one.end.how for one in tape.exchanges().values() if one.end] == ["complete"] * 2
        assert only_run(running.store).steps == 2


def test_a_run_that_was_killed_on_this_machine_is_interrupted_at_once(tmp_path: Path):
    """Long before a heartbeat is missed."""
    with ScriptedServer() as provider, receiver(tmp_path / "data") as running:
        provider.on("/v1/chat/completions", answer, repeat=True)
        environ = agent_environment(running.http_endpoint, tmp_path / "spool", provider.url)
        environ["PLAYHEAD_HEARTBEAT_MS"] = "600000"
        log = tmp_path / "log.txt"
        agent = start_agent("streaming.py", str(log), "100000", environ=environ, cwd=tmp_path)
        try:
            until(lambda: list(running.store.runs(Query())), "the run is stored")
            assert only_run(running.store).status == "running"
        finally:
            agent.kill()
            agent.wait()
        assert only_run(running.store).status == "interrupted"
