"""Agents in processes of their own, a receiver, and what reached its store."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.starting.warm import Process, run

from playhead_core.facts import Fact
from playhead_core.settings import resolve
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_exporter.push import push
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Query, RunSummary, Store
from playhead_semconv import attributes as a
from playhead_semconv import events as e

AGENTS = Path(__file__).parents[2] / "end_to_end" / "agents"
PATIENCE_S = 60.0
HEARTBEAT_MS = 200
"""A short interval, so that a killed process is detected soon."""


def until(condition: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S) -> Any:
    """Poll ``condition`` until it is true and return its value. Fails with ``what`` at the timeout."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.005)
    return value


@contextmanager
def receiver(data_dir: Path, forward: tuple[str, ...] = ()) -> Iterator[Receiver]:
    """A receiver on free ports."""
    configuration = Configuration(Addresses(http_port=0, grpc_port=0), forward=forward)
    with Receiver(data_dir, configuration) as running:
        yield running


def agent_environment(endpoint: str, spool: Path, provider: str, **more: str) -> dict[str, str]:
    """The environment of a recorded agent, without variables of ours that it should not see."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PLAYHEAD_"))
    }
    return {
        **kept,
        "PLAYHEAD_ENDPOINT": endpoint,
        "PLAYHEAD_SPOOL_DIR": str(spool),
        "PLAYHEAD_HEARTBEAT_MS": str(HEARTBEAT_MS),
        "PLAYHEAD_EXPORT_INTERVAL_MS": "20",
        "PLAYHEAD_LEVEL": "causal",
        "PLAYHEAD_QUIET": "1",
        "OPENAI_API_KEY": "test",
        "ANTHROPIC_API_KEY": "test",
        "OPENAI_BASE_URL": f"{provider}/v1",
        "ANTHROPIC_BASE_URL": provider,
        "NO_PROXY": "127.0.0.1",
        **more,
    }


def record_words(script: Path | str, *arguments: str) -> list[str]:
    """The command line that records ``script``."""
    return [sys.executable, "-m", "playhead_instrumentation", "record", str(script), *arguments]


def start_agent(
    script: str, *arguments: str, environ: Mapping[str, str], cwd: Path, **options: Any
) -> subprocess.Popen[bytes]:
    """Start one of `AGENTS`, recorded."""
    return Process(record_words(AGENTS / script, *arguments), env=environ, cwd=cwd, **options)


def run_agent(
    script: str, *arguments: str, environ: Mapping[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Run one of `AGENTS` to its end, recorded; fails if it does not succeed."""
    done = run(record_words(AGENTS / script, *arguments), env=environ, cwd=cwd, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done


def push_leftovers(environ: Mapping[str, str]) -> None:
    """Deliver what a dead process left in its spool."""
    push(resolve(environ).settings, everything=True)


def instances(store: Store) -> list[bytes]:
    """Every process instance of every recorded run."""
    return [bytes.fromhex(one) for run in store.runs(Query(mode=None)) for one in run.instances]


def facts_of(store: Store, instance: bytes) -> list[Fact]:
    """The facts of a process instance in the order of the store."""
    return list(store.tape(instance).facts())


def only_run(store: Store) -> RunSummary:
    """The only run in the store."""
    (run,) = store.runs(Query(mode=None))
    return run


def whole_tape(store: Store, instance: bytes) -> MemoryTape:
    """The tape of an instance; fails if a fact is missing or occurs twice."""
    facts = facts_of(store, instance)
    numbers = [fact.seq for fact in facts]
    assert len(set(numbers)) == len(numbers), "a fact is there twice"
    tape = MemoryTape(facts)
    assert tape.gaps() == []
    return tape


def ended(store: Store, instance: bytes) -> bool:
    """Whether the exit fact of a process has arrived."""
    return any(fact.name == e.PLAYHEAD_PROCESS_EXIT for fact in facts_of(store, instance))


def exit_codes(store: Store) -> list[int]:
    """Exit statuses of all processes that ended regularly."""
    return [
        fact.attributes[a.PLAYHEAD_PROCESS_EXIT_CODE]
        for instance in instances(store)
        for fact in facts_of(store, instance)
        if fact.name == e.PLAYHEAD_PROCESS_EXIT
    ]
