"""Commands that control a running agent, as somebody types them beside it."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.outside.controlling import Stage, on_stage, said_back
from support.servers.scripted import ScriptedServer, json_reply, openai_chat
from support.starting.home import Home
from support.starting.running import until

AGENT = f"""
import sys
import playhead
{ASKING}

@playhead.tool
def send_email(to):
    return f"sent to {{to}}"

print("ready", flush=True)
sys.stdin.readline()
for number in range(3):
    try:
        print(asked(f"question {{number}}"), flush=True)
    except HTTPError as error:
        print(json.load(error)["error"]["message"], flush=True)
print(send_email("bob"), flush=True)
"""


def ready(agent: subprocess.Popen[str]) -> None:
    """Wait until an agent has printed that it is ready."""
    assert agent.stdout is not None
    assert agent.stdout.readline() == "ready\n"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with on_stage(tmp_path) as stage:
        stage.provider.script([said_back], repeat=True)
        yield stage


def lines(home: Home, *words: str) -> list[str]:
    done = home.playhead(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_run_is_paused_looked_at_changed_and_let_go(stage: Stage):
    home = stage.home
    agent = stage.start(stage.script(AGENT))
    assert agent.stdin is not None
    ready(agent)
    until(lambda: stage.operator.listens("agent-1"), "it takes orders")
    (held,) = lines(home, "pause", "agent-1", "--lease", "5m", "--wait", "0s")
    assert held.startswith("agent-1 is paused by ") and held.endswith(" for 5m")
    agent.stdin.write("go\n")
    agent.stdin.flush()
    _, waits = lines(home, "pause", "agent-1")
    assert waits.startswith("  1  http POST http://127.0.0.1:")
    assert waits.endswith("  question 0")
    _, waits = lines(home, "edit", "agent-1", "messages[-1].content=hello")
    assert waits.endswith("  hello")
    nothing = home.playhead("edit", "agent-1", "nosuch=1")
    assert nothing.returncode == 2
    assert "error[control-refused]: nosuch matches nothing" in nothing.stderr
    _, waits = lines(home, "step", "agent-1")
    assert waits.startswith("  2  ") and waits.endswith("  question 1")
    lines(home, "reject", "agent-1:2", "-m", "not today")
    stage.operator.halted("agent-1")
    lines(home, "answer", "agent-1", json.dumps(openai_chat.completion("by hand")))
    stage.operator.halted("agent-1")
    shown = json.loads("".join(lines(home, "edit", "agent-1", "function.to=anna", "--json")))
    assert (shown["schema_version"], shown["run"], shown["taken"]) == (1, "agent-1", True)
    assert [one["key"] for one in shown["halted"]] == ["send_email"]
    lines(home, "continue", "agent-1")
    said = ["You said hello", "not today", "by hand", "sent to anna"]
    assert stage.ended(agent).splitlines() == said
    over = home.playhead("step", "agent-1")
    assert over.returncode == 2
    assert "error[control-refused]: this run has ended" in over.stderr
    assert "hint: playhead fork RUN:POINT" in over.stderr


def test_conditions_are_set_and_shown(stage: Stage):
    home = stage.home
    agent = stage.start(stage.script(AGENT))
    ready(agent)
    until(lambda: stage.operator.listens("agent-1"), "it takes orders")
    words = ("--on", "tool=send_email", "--on", "error", "--stop", "model=gpt-*")
    held, *rules = lines(home, "pause", "agent-1", *words)
    assert " is held by " in held
    assert rules == ["  rule: pause tool=send_email", "  rule: pause error", "  rule: stop model=gpt-*"]
    wrong = home.playhead("pause", "agent-1", "--on", "tol=x")
    assert wrong.returncode == 2
    assert "did you mean tool?" in wrong.stderr
    assert agent.stdin is not None
    agent.stdin.write("go\n")
    agent.stdin.flush()
    (waits,) = stage.operator.halted("agent-1")
    assert waits["reason"] == "tool=send_email"
    lines(home, "continue", "agent-1")
    rejected = ["the rule stop model=gpt-* applies"] * 3
    assert stage.ended(agent).splitlines() == [*rejected, "sent to bob"]


def test_what_waits_is_edited_in_an_editor(stage: Stage):
    home = stage.home
    editor = home.folder / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/question 0/by editor/" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    agent = stage.start(stage.script(AGENT), control="pause model=*")
    assert agent.stdin is not None
    agent.stdin.write("go\n")
    agent.stdin.flush()
    stage.operator.halted("agent-1")
    done = home.playhead("edit", "agent-1", env={**home.environ, "EDITOR": str(editor)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("  by editor")
    for _ in range(3):
        stage.operator.halted("agent-1")
        stage.operator.order("agent-1", "continue")
    assert stage.ended(agent).splitlines()[1] == "You said by editor"


STATES = f"""
import playhead
{ASKING}
budget = {{"left": 4}}
playhead.register_state("budget", lambda: budget)
asked("hello")
print(budget["left"], flush=True)
"""


def test_a_registered_state_is_shown_and_edited(stage: Stage):
    home = stage.home
    agent = stage.start(stage.script(STATES), control="pause model=*")
    stage.operator.halted("agent-1")
    wrong = home.playhead("edit", "agent-1", "state.nosuch.x=1")
    assert "no state nosuch is registered; registered is budget" in wrong.stderr
    lines(home, "edit", "agent-1", "state.budget.left=9")
    mixed = home.playhead("edit", "agent-1", "state.budget.left=9", "model=x")
    assert "request, state cannot be edited together" in mixed.stderr
    lines(home, "continue", "agent-1")
    assert stage.ended(agent) == "9\n"
    (listed,) = json.loads(lines(home, "checkpoints", "agent-1", "--json")[0])["checkpoints"]
    assert (listed["label"], listed["states"]) == ("halted", ["budget"])
    assert home.report("agent-1")[1]["verdict"] == "identical"


def test_a_recording_brings_the_receiver_that_takes_orders(tmp_path: Path):
    with ScriptedServer() as provider:
        provider.script([said_back], repeat=True)
        home = Home(tmp_path, {"OPENAI_BASE_URL": provider.openai_url, "OPENAI_API_KEY": "test"})
        script = tmp_path / "agent.py"
        script.write_text(AGENT)
        agent = home.start("record", "--control", "on", script)
        assert agent.stdin is not None
        ready(agent)
        words = ("pause", "agent-1", "--wait", "0s")
        until(lambda: home.playhead(*words).returncode == 0, "it takes orders")
        agent.stdin.write("go\n")
        agent.stdin.flush()
        assert lines(home, "pause", "agent-1")[1].endswith("  question 0")
        lines(home, "continue", "agent-1")
        out, err = agent.communicate(timeout=60)
        assert agent.returncode == 0, err
        assert out.splitlines()[-1] == "sent to bob"


def test_an_agent_that_has_just_begun_is_waited_for(tmp_path: Path):
    early = {"type": "urn:playhead:not-controlled", "detail": "no process of this run is connected"}
    held = {"holder": "anna", "left_s": 300.0}
    state = {"revision": 1, "processes": [], "lease": held, "halted": [], "taken": True}
    with ScriptedServer() as receiver:
        refused = json_reply(early, status=409)
        receiver.script([refused, refused, json_reply(state)])
        home = Home(tmp_path, {})
        assert lines(home, "pause", "agent-1", "--wait", "0s", "--url", receiver.url)
        assert len(receiver.requests) == 3


def test_without_a_receiver_it_says_what_to_do(tmp_path: Path):
    home = Home(tmp_path, {})
    done = home.playhead("pause", "agent-1")
    assert done.returncode == 1
    assert "error[control-unreachable]: no receiver runs on " in done.stderr
    assert "hint: playhead up" in done.stderr
    done = home.playhead("pause", "agent-1", "--url", "http://127.0.0.1:1")
    assert "error[control-unreachable]: http://127.0.0.1:1 does not answer" in done.stderr
    done = home.playhead("pause", "some.tape")
    assert "some.tape is a file, not a live run" in done.stderr


def test_a_checkpoint_is_made_from_outside_and_the_run_goes_on(stage: Stage):
    home = stage.home
    agent = stage.start(stage.script(AGENT))
    ready(agent)
    until(lambda: stage.operator.listens("agent-1"), "it takes orders")
    late = home.playhead("checkpoint", "agent-1", "--wait", "0s")
    assert late.returncode == 1 and "has not reached its next step" in late.stderr
    before = stage.operator.state("agent-1")["revision"]
    asking = home.start("checkpoint", "agent-1", "--label", "by hand", "--wait", "60s")
    ordered_and_taken = before + 2
    until(lambda: stage.operator.state("agent-1")["revision"] >= ordered_and_taken, "it is taken")
    assert stage.ended(agent, "go\n").splitlines()[-1] == "sent to bob"
    out, err = asking.communicate(timeout=60)
    assert (asking.returncode, out) == (0, "c2\n"), err
    found = json.loads(home.playhead("checkpoints", "agent-1", "--json").stdout)["checkpoints"]
    assert [(one["name"], one["kind"], one["label"]) for one in found] == [
        ("c1", "manual", None),
        ("c2", "manual", "by hand"),
    ]
    over = home.playhead("checkpoint", "agent-1")
    assert over.returncode != 0 and "this run has ended" in over.stderr
    assert "no run" in home.playhead("checkpoint", "nosuch-1").stderr
