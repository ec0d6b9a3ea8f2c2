"""What was recorded strictly is seen again in every replay, in the same order, however threads run."""

import itertools
import random
import sys
import time

import pytest
from support.observed.nasty import NASTY
from support.observed.racing import PROGRAMS
from support.servers.scripted import ScriptedServer, json_reply
from support.tapes.sessions import record, replay

from playhead_core.settings import Settings
from playhead_semconv import attributes as a
from playhead_semconv import events as e

STRICT = Settings(quiet=True, level="strict")


@pytest.fixture
def server():
    """Answers every request with the number of the answer, each after a while of its own."""
    numbers = itertools.count()
    chance = random.Random()

    def answer(request):
        time.sleep(chance.random() * 0.01)
        return json_reply({"answer": next(numbers)})

    with ScriptedServer() as running:
        running.on(lambda _: True, answer, repeat=True)
        yield running


@pytest.fixture(autouse=True)
def hasty():
    """Threads take permits as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(
    params=[pytest.param(3, id="3"), pytest.param(20, id="20", marks=pytest.mark.acceptance)]
)
def times(request):
    return request.param


@pytest.mark.parametrize("program", [*PROGRAMS, *NASTY], ids=lambda one: one.__name__)
def test_every_replay_is_the_recording(program, server, times):
    recorded, tape = record(lambda: program(server.url), settings=STRICT)
    server.close()
    [start] = [fact for fact in tape.facts() if fact.name == e.PLAYHEAD_PROCESS_START]
    assert start.attributes[a.PLAYHEAD_RUN_LEVEL] == "strict"
    delivered = [fact.delivery for fact in tape.facts() if fact.delivery is not None]
    assert len({one.batch for one in delivered}) == len(delivered)
    for _ in range(times):
        replayed, now = replay(lambda: program(server.url), tape)
        assert replayed == recorded
        fidelities = {str(one.ask.details[a.PLAYHEAD_FIDELITY]) for one in now.exchanges().values()}
        assert fidelities == {"exact"}
