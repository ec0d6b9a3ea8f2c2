"""Agents that were started without control: a command of the same user switches it on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.outside.controlling import Stage, on_stage, said_back
from support.starting.cli import CommandLine
from support.starting.running import until
from support.starting.warm import Process

from playhead_cli.control import orders
from playhead_core.settings import Settings
from playhead_exporter.spool.folders import SpoolFolders
from playhead_receiver.storage import Query
from playhead_semconv import attributes as a
from playhead_semconv import events as e

ASKS = f"""
import sys
{ASKING}
for number in range(4):
    print(asked(f"question {{number}}"), flush=True)
    if number == 0:
        sys.stdin.readline()
"""
SAID = [f"You said question {number}" for number in range(4)]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with on_stage(tmp_path) as stage:
        stage.provider.script([said_back], repeat=True)
        yield stage


def recorded(stage: Stage, level: str) -> subprocess.Popen[str]:
    environ = {**stage.home.environ, "PLAYHEAD_LEVEL": level}
    return stage.home.start("record", stage.script(ASKS), env=environ)


def instrumented(stage: Stage, level: str) -> subprocess.Popen[str]:
    endpoint = {"PLAYHEAD_ENDPOINT": stage.receiver.http_endpoint, "PLAYHEAD_LEVEL": level}
    launcher = Path(sys.executable).with_name("opentelemetry-instrument")
    return Process(
        [launcher, sys.executable, stage.script(ASKS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=stage.home.folder,
        env={**stage.home.environ, **endpoint},
    )


def answered(stage: Stage, agent: subprocess.Popen[str]) -> None:
    """Wait until an agent has printed its first answer, and is known to the receiver."""
    assert agent.stdout is not None
    assert agent.stdout.readline() == f"{SAID[0]}\n"
    known(stage, 1)


def known(stage: Stage, processes: int) -> None:
    """Wait until the receiver knows so many processes of the run."""
    runs = stage.receiver.store.runs
    until(lambda: [len(one.instances) for one in runs(Query())] == [processes], "its run is stored")


def ordered(stage: Stage, *words: str) -> str:
    done = stage.home.playhead(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked_to_pause(stage: Stage, status: int, text: str) -> str:
    """Ask until the command ends so: a busy agent may take longer than the command waits for it."""

    def once() -> str | None:
        done = stage.home.playhead("pause", "agent-1", "--wait", "0s")
        told = f"{done.stdout}{done.stderr}"
        return told if done.returncode == status and text in told else None

    return until(once, f"pause ends with {status}: {text}")


@pytest.mark.parametrize(
    ("start", "level"), [(recorded, "exchanges"), (recorded, "strict"), (instrumented, "exchanges")]
)
def test_an_agent_is_paused_in_the_middle_of_its_run(stage: Stage, start, level: str):
    agent = start(stage, level)
    answered(stage, agent)
    asked_to_pause(stage, 0, "agent-1 is paused by ")
    assert agent.stdin is not None
    agent.stdin.write("go\n")
    agent.stdin.flush()
    (waits,) = stage.operator.halted("agent-1")
    assert "question 1" in waits["body"]
    assert ordered(stage, "step", "agent-1").splitlines()[-1].endswith("  question 2")
    assert len(stage.provider.requests) == 2
    ordered(stage, "continue", "agent-1")
    out, err = agent.communicate(timeout=90)
    assert (agent.returncode, out.splitlines()) == (0, SAID[1:]), err
    (tape,) = stage.home.run("agent-1").tapes
    orders = [fact.attributes for fact in tape.named(e.PLAYHEAD_CONTROL_ORDER)]
    assert [one[a.PLAYHEAD_CONTROL_ACTION] for one in orders] == ["on", "pause", "continue"]
    assert len({one[a.PLAYHEAD_CONTROL_BY] for one in orders}) == 1
    status, report = stage.home.report("agent-1", input="go\n")
    assert (status, report["verdict"], report["divergences"]) == (0, "identical", [])


FORKS = f"""
import os
import playhead
{ASKING}
playhead.register_state("budget", lambda: {{"left": 4}}, every_steps=1)
child = os.fork()
who = "the parent" if child else "the child"
for number in range(2):
    print(asked(f"question {{number}} of {{who}}"), flush=True)
    os.read(0, 1)
if child:
    os.waitpid(child, 0)
"""


def test_all_processes_of_a_run_are_asked_and_go_on_making_checkpoints(stage: Stage):
    agent = stage.home.start("record", stage.script(FORKS), env=stage.home.environ)
    assert agent.stdin is not None and agent.stdout is not None
    assert {agent.stdout.readline()[:19] for _ in range(2)} == {"You said question 0"}
    known(stage, 2)
    asked_to_pause(stage, 0, "agent-1 is paused by ")
    agent.stdin.write("go")
    agent.stdin.flush()
    waiting = stage.operator.halted("agent-1", 2)
    assert all("question 1 of the" in one["body"] for one in waiting)
    ordered(stage, "continue", "agent-1")
    assert {line[:19] for line in stage.ended(agent, "on").splitlines()} == {"You said question 1"}
    for tape in stage.home.run("agent-1").tapes:
        reasons = [
            fact.attributes[a.PLAYHEAD_CONTROL_BY] for fact in tape.named(e.PLAYHEAD_CONTROL_CHECKPOINT)
        ]
        assert reasons == ["steps"] * 2


def test_who_does_not_want_control_never_gets_it(stage: Stage):
    environ = {**stage.home.environ, "PLAYHEAD_CONTROL": "off"}
    agent = stage.home.start("record", stage.script(ASKS), env=environ)
    answered(stage, agent)
    refused = asked_to_pause(stage, 2, "it was started with control 'off'\n")
    assert "error[control-refused]: the agent does not accept commands: it was " in refused
    assert "hint: start it with PLAYHEAD_CONTROL=on" in refused
    assert stage.ended(agent, "go\n").splitlines() == SAID[1:]


def test_an_agent_that_is_not_here_is_not_asked(stage: Stage, tmp_path: Path):
    agent = recorded(stage, "exchanges")
    answered(stage, agent)
    elsewhere = {**stage.home.environ, "PLAYHEAD_SPOOL_DIR": str(tmp_path / "another")}
    refused = stage.home.playhead("pause", "agent-1", env=elsewhere)
    assert refused.returncode == 2
    assert "error[control-refused]: no process of this run is connected for control" in refused.stderr
    assert "hint: playhead pause RUN on its machine, as its user" in refused.stderr
    assert stage.ended(agent, "go\n").splitlines() == SAID[1:]


def test_an_agent_that_does_not_answer_is_asked_for_a_while(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    agent = recorded(stage, "exchanges")
    answered(stage, agent)
    monkeypatch.setattr(orders, "SWITCHING_S", 0.0)
    for name in ("PLAYHEAD_SPOOL_DIR", "HOME"):
        monkeypatch.setenv(name, stage.home.environ[name])
    refused = CommandLine(stage.home.data_dir, capsys)("pause", "agent-1")
    assert refused.status == 2
    assert "the agent did not switch control on within 0 s" in refused.err
    assert stage.ended(agent, "go\n").splitlines() == SAID[1:]
    home = SpoolFolders.of(Settings(spool_dir=stage.home.environ["PLAYHEAD_SPOOL_DIR"]))
    assert home.shared is not None
    assert not list(home.shared.glob("*.control*"))
