"""urllib3, requests, botocore, urllib and http.client: seen unchanged, recorded once, replayed alike."""

import pytest
from support.blocking_programs import HELD, REQUESTS, STDLIB, URLLIB3, Case
from support.scripted import ScriptedServer
from support.sessions import record, replay

from playhead_semconv import attributes as a
from playhead_semconv.tapes import MemoryTape


@pytest.fixture(autouse=True)
def let_go():
    yield
    HELD.clear()


def ends(tape: MemoryTape) -> list[str]:
    return [one.end.how if one.end else "none" for one in tape.exchanges().values()]


def fidelities(now: MemoryTape) -> list[str]:
    return [str(one.ask.details[a.PLAYHEAD_FIDELITY]) for one in now.exchanges().values()]


@pytest.mark.parametrize(
    "case", [*URLLIB3, *REQUESTS, *STDLIB], ids=lambda one: f"{one.run.__name__}-{one.name}"
)
def test_seen_recorded_and_replayed(case: Case):
    with ScriptedServer() as server:
        server.script(case.script())
        alone = case.run(server.url)
        server.script(case.script())
        recorded, tape = record(lambda: case.run(server.url))
    assert recorded == alone
    assert ends(tape) == case.ends
    replayed, now = replay(lambda: case.run(server.url), tape)
    assert replayed == recorded
    assert fidelities(now) == ["exact"] * len(case.ends)
    assert ends(now) == case.ends
    sizes = [[part.data.size for part in one.parts] for one in tape.exchanges().values()]
    assert [[part.data.size for part in one.parts] for one in now.exchanges().values()] == sizes
