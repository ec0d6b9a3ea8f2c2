"""200 tasks and 32 threads, with identical and distinct calls, real clients and real noise."""

import subprocess
import sys
from collections import Counter
from contextlib import contextmanager

import pytest
from support.observed.mixed import TASKS, THREADS, jittered, mixed
from support.tapes.sessions import record, replay

from playhead_core.settings import Settings
from playhead_instrumentation.scheduler.gates import strict
from playhead_semconv import attributes as a
from playhead_semconv import events as e

STRICT = Settings(quiet=True, level="strict")
CAUSAL = Settings(quiet=True, level="causal")


@contextmanager
def load():
    """Both cores are busy with something else."""
    burning = [
        subprocess.Popen([sys.executable, "-c", "while True: sum(range(10000))"]) for _ in range(2)
    ]
    try:
        yield
    finally:
        for one in burning:
            one.kill()
            one.wait()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A thread that gets no processor for a while is waited for, on a busy machine too."""
    monkeypatch.setattr(strict, "HOLD_S", 10.0)
    monkeypatch.setattr(strict, "GRANTED_HOLD_S", 10.0)
    monkeypatch.setattr(strict, "COMPUTING_HOLD_S", 10.0)


@pytest.fixture(autouse=True)
def hasty():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def fidelities(tape):
    return Counter(str(one.ask.details[a.PLAYHEAD_FIDELITY]) for one in tape.exchanges().values())


def strictly(tasks, threads, times):
    with jittered() as server:
        recorded, tape = record(lambda: mixed(server.url, tasks, threads), settings=STRICT)
    [start] = [fact for fact in tape.facts() if fact.name == e.PLAYHEAD_PROCESS_START]
    assert start.attributes[a.PLAYHEAD_RUN_LEVEL] == "strict"
    for _ in range(times):
        replayed, now = replay(lambda: mixed(server.url, tasks, threads), tape)
        assert replayed == recorded
        assert set(fidelities(now)) == {"exact"}


def test_tasks_and_threads_mixed_are_replayed_identical():
    strictly(24, 8, 2)


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_two_hundred_tasks_and_thirty_two_threads_are_replayed_identical_under_load():
    with load():
        strictly(TASKS, THREADS, 20)


@pytest.mark.parametrize(
    ("tasks", "threads"), [(24, 8), pytest.param(TASKS, THREADS, marks=pytest.mark.acceptance)]
)
def test_at_causal_level_every_request_gets_an_answer_of_its_own(tasks, threads):
    """What differs is the order in which threads saw them."""
    with jittered() as server:
        recorded, tape = record(lambda: mixed(server.url, tasks, threads), settings=CAUSAL)
    replayed, now = replay(lambda: mixed(server.url, tasks, threads), tape)
    found = fidelities(now)
    assert found.total() == len(tape.exchanges())
    assert set(found) <= {"exact", "moved"}
    assert len(replayed) == len(recorded)
    tasks_said = [{one for one in seen if one[0] == "task"} for seen in (recorded, replayed)]
    assert tasks_said[0] == tasks_said[1]
