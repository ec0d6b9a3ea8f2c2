"""Nobody freezes an agent for ever: leases, two operators, missing scopes, a receiver that dies."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.outside.controlling import Operator, Stage, on_stage, said_back
from support.servers.scripted import ScriptedServer
from support.starting.home import Home
from support.starting.running import until
from support.starting.warm import Process

from playhead_receiver.auth import TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access
from playhead_receiver.system.writer_lock import running
from playhead_replay import Run
from playhead_semconv import attributes as a
from playhead_semconv import events as e

ASKS = f"""
import sys
{ASKING}
print("ready", flush=True)
sys.stdin.readline()
for number in range(2):
    print(asked(f"question {{number}}"), flush=True)
"""
SAID = ["You said question 0", "You said question 1"]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with on_stage(tmp_path) as stage:
        stage.provider.script([said_back], repeat=True)
        yield stage


def ready(agent: subprocess.Popen[str]) -> None:
    assert agent.stdout is not None
    assert agent.stdout.readline() == "ready\n"


def goes(agent: subprocess.Popen[str]) -> None:
    assert agent.stdin is not None
    agent.stdin.write("go\n")
    agent.stdin.flush()


def ordered(run: Run) -> list[str]:
    """What was ordered, and how what waited went on."""
    (tape,) = run.tapes
    names = (e.PLAYHEAD_CONTROL_ORDER, e.PLAYHEAD_CONTROL_RELEASE)
    return [str(fact.attributes[a.PLAYHEAD_CONTROL_ACTION]) for fact in tape.named(*names)]


def test_a_run_goes_on_when_its_lease_is_over(stage: Stage):
    agent = stage.start(stage.script(ASKS))
    ready(agent)
    stage.operator.order("agent-1", "pause")
    goes(agent)
    stage.operator.halted("agent-1")
    stage.operator.order("agent-1", "lease", lease_s=2)
    assert stage.ended(agent).splitlines() == SAID
    assert ordered(stage.home.run("agent-1")) == ["pause", "expired", "expired"]
    assert stage.home.report("agent-1", input="go\n")[1]["verdict"] == "identical"


def test_a_renewed_lease_holds_for_longer(stage: Stage):
    agent = stage.start(stage.script(ASKS))
    ready(agent)
    stage.operator.order("agent-1", "pause", lease_s=60)
    assert stage.operator.order("agent-1", "lease", lease_s=500)["lease"]["left_s"] > 400
    goes(agent)
    stage.operator.halted("agent-1")
    stage.operator.order("agent-1", "continue")
    assert stage.ended(agent).splitlines() == SAID
    over = stage.operator.post("agent-1", "pause")
    assert (over.status_code, over.json()["detail"]) == (409, "this run has ended")


def test_the_second_operator_sees_who_holds_the_run(stage: Stage):
    agent = stage.start(stage.script(ASKS))
    ready(agent)
    stage.operator.order("agent-1", "pause")
    bob = Operator(stage.receiver.query_endpoint, "bob")
    for what in ("pause", "continue", "step", "reject"):
        refused = bob.post("agent-1", what)
        assert refused.status_code == 409
        assert refused.json()["detail"].startswith("anna holds this run for ")
    assert bob.state("agent-1")["lease"]["holder"] == "anna"
    stage.operator.order("agent-1", "continue")
    bob.order("agent-1", "pause")
    goes(agent)
    bob.halted("agent-1")
    bob.order("agent-1", "continue")
    bob.close()
    assert stage.ended(agent).splitlines() == SAID


def test_a_run_that_is_not_controlled_is_refused(stage: Stage):
    agent = stage.start(stage.script(ASKS), control="off")
    ready(agent)

    def answered():
        answer = stage.operator.post("agent-1", "pause")
        return None if answer.status_code == 404 else answer

    refused = until(answered, "the receiver has heard of the run")
    assert refused.status_code == 409
    assert refused.json()["hint"].startswith("playhead pause RUN on its machine")
    goes(agent)
    assert stage.ended(agent).splitlines() == SAID


def test_control_needs_its_scope(tmp_path: Path):
    book = TokenBook(AccessFile(tmp_path / "data"))
    reads, controls, sends = (book.create(name, [name])[1] for name in ("read", "control", "ingest"))
    with on_stage(tmp_path, Access(guarded=True)) as stage:
        stage.provider.script([said_back], repeat=True)
        agent = stage.start(stage.script(ASKS), PLAYHEAD_TOKEN=sends)
        ready(agent)
        url = stage.receiver.query_endpoint
        for token, status in ((reads, 403), (sends, 403), ("", 401)):
            refused = Operator(url, token=token)
            assert refused.post("agent-1", "pause").status_code == status
            refused.close()
        may = Operator(url, "anna", controls)
        may.order("agent-1", "pause")
        goes(agent)
        sees = Operator(url, token=reads)
        assert sees.halted("agent-1")
        assert sees.state("agent-1")["lease"]["holder"] == "anna via control"
        may.order("agent-1", "continue")
        assert stage.ended(agent).splitlines() == SAID


SOON_LOST = """
from playhead_instrumentation.control import server
server.LOST_S = 1.0
"""
"""The receiver may die at any moment of a lease but its last second."""


def receiver_of_its_own(folder: Path) -> subprocess.Popen[bytes]:
    words = ["-m", "playhead_cli", "up", "--data-dir", str(folder / "data")]
    ports = ["--http-port", "0", "--grpc-port", "0", "--query-port", "0"]
    child = Process([sys.executable, *words, *ports], stderr=subprocess.DEVNULL)
    until(lambda: (found := running(folder / "data")) is not None and found.query, "it listens")
    return child


@pytest.mark.parametrize(
    ("control", "said"),
    [
        pytest.param("on", SAID, id="goes on"),
        pytest.param("on; stop lost", ["HTTP Error 403"], id="stops", marks=pytest.mark.acceptance),
    ],
)
def test_a_receiver_that_dies_while_a_run_is_paused(tmp_path: Path, control: str, said: list[str]):
    with ScriptedServer() as provider:
        provider.script([said_back], repeat=True)
        home = Home(tmp_path, {"OPENAI_BASE_URL": provider.openai_url, "OPENAI_API_KEY": "test"})
        script = tmp_path / "agent.py"
        script.write_text(SOON_LOST + ASKS)
        receiver = receiver_of_its_own(tmp_path)
        found = running(tmp_path / "data")
        assert found is not None
        agent = home.start("record", script, env={**home.environ, "PLAYHEAD_CONTROL": control})
        ready(agent)
        anna = Operator(found.query)
        anna.order("agent-1", "pause")
        goes(agent)
        anna.halted("agent-1")
        anna.order("agent-1", "lease", lease_s=15)
        anna.close()
        receiver.send_signal(signal.SIGKILL)
        receiver.wait()
        out, err = agent.communicate(timeout=90)
        if control == "on":
            assert out.splitlines() == said
        else:
            assert said[0] in err
        run = home.run("agent-1")
        assert ordered(run)[:2] == ["pause", "lost"]
        assert home.report("agent-1", input="go\n")[1]["verdict"] == "identical"
