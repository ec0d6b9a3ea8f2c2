"""A program says its state: it is shown, compared, asserted, and edited in a fork."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.branching import environment, playhead, stored

from playhead_replay import Environment, ReplayConfiguration, Replayer
from playhead_replay.goldens import read_golden
from playhead_replay.goldens.replayed_golden import ReplayedGolden
from playhead_replay.run.run import Run
from playhead_semconv import attributes as a
from playhead_semconv import events as e

AGENT = f"""
import dataclasses
import playhead
{ASKING}
@dataclasses.dataclass
class Order:
    number: int
    lines: list

state = {{"order": Order(81, []), "left": 4, "notes": "n" * 3000}}
for step in range(4):
    given = playhead.state(state)
    assert given is state
    answer = asked(f"order {{state['order'].number}}, {{state['left']}} left")
    state["order"].lines.append(answer)
    state["left"] -= 1
playhead.state(state)
playhead.state(state, name="again")
print(state["order"].number, state["left"], len(state["order"].lines))
"""


def answer(request: Request) -> Reply:
    return json_reply(openai_chat.completion(f"to {request.json['messages'][-1]['content']}"))


@dataclass
class Stage:
    folder: Path
    provider: ScriptedServer
    environ: dict[str, str]

    @property
    def script(self) -> Path:
        return self.folder / "agent.py"

    def playhead(self, *words: str):
        return playhead(*words, environ=self.environ, cwd=self.folder)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("states")
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        environ = environment(folder, provider.url)
        environ = {
            name: value
            for name, value in environ.items()
            if name not in ("PLAYHEAD_ENDPOINT", "PLAYHEAD_QUIET")
        }
        made = Stage(folder, provider, environ)
        made.script.write_text(AGENT)
        done = made.playhead("record", "agent.py")
        assert done.stdout == "81 0 4\n", done.stderr
        yield made


def test_states_are_on_the_tape_once_each(stage: Stage):
    with stored(stage.folder, "agent-1") as [run]:
        found = [(one.name, one.step, one.value["left"]) for one in run.states]
        assert found == [("state", n, 4 - n) for n in range(5)] + [("again", 4, 0)]
        assert run.states[2].value["order"] == {
            "number": 81,
            "lines": ["to order 81, 4 left", "to order 81, 3 left"],
        }
        bodies = [fact.body for fact in run.tape.named(e.PLAYHEAD_STATE)]
        kept = [len(body.inline) if body is not None and body.inline else 0 for body in bodies]
        assert kept[-1] == 0  # the same content again
        root = run.roots[0]
        said = [event for event in root.events if event.name == e.PLAYHEAD_STATE]
        assert [event.attributes[a.PLAYHEAD_STATE_NAME] for event in said] == ["state"] * 5 + ["again"]
    shown = json.loads(stage.playhead("show", "agent-1:2", "--json").stdout)
    assert [one["value"]["left"] for one in shown["states"]] == [2]
    assert '"left": 2' in stage.playhead("show", "agent-1:2").stdout


def test_a_replay_compares_the_states(stage: Stage):
    done = stage.playhead("replay", "agent-1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "states 6 identical" in done.stdout
    try:
        stage.script.write_text(AGENT.replace('"n" * 3000', '"n" * 3000 + "!"'))
        done = stage.playhead("replay", "agent-1", "--force", "--json")
    finally:
        stage.script.write_text(AGENT)
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert {one["kind"] for one in found["divergences"]} == {"state"}
    assert found["first_divergence"]["path"] == "$.notes"
    assert len(found["divergences"]) == 6
    assert found["outputs"]["states"]["identical"] is False


def test_a_fork_goes_on_with_an_edited_state(stage: Stage):
    before = len(stage.provider.requests)
    done = stage.playhead("fork", "agent-1:3", "--edit", "state.order.number=82")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "82 0 4"
    asked = [one.json["messages"][-1]["content"] for one in stage.provider.requests[before:]]
    assert asked == ["order 82, 2 left", "order 82, 1 left"]
    with stored(stage.folder, "last") as [fork]:
        name = fork.name
        assert [one.value["order"]["number"] for one in fork.states] == [81, 81, 82, 82, 82, 82]
        assert len(fork.states[1].value["order"]["lines"]) == 1
    again = stage.playhead("replay", name)
    assert again.returncode == 0, again.stdout
    differing = json.loads(stage.playhead("diff", "agent-1", name, "--json").stdout)
    first = differing["first_difference"]
    assert (first["kind"], first["left_step"], first["path"]) == ("state", 2, "state.order.number")
    assert (first["left"], first["right"]) == ("81", "82")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["agent-1:3", "--edit", "state.order.nmber=1"], "order.value[1].nmber matches nothing"),
        (["agent-1:3", "--edit", "state.left=1", "--edit", "model=x"], "either a state or a request"),
        (["agent-1", "--edit", "state.left=1"], "an edit needs a step"),
    ],
)
def test_an_edit_of_a_state_that_cannot_be_is_refused(stage: Stage, words: list[str], said: str):
    before = len(stage.provider.requests)
    done = stage.playhead("fork", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(stage.provider.requests) == before


def test_a_golden_asserts_states(stage: Stage):
    done = stage.playhead("golden", "add", "agent-1", "--name", "order", "--dir", "goldens")
    assert done.returncode == 0, done.stderr
    golden = stage.folder / "goldens" / "order.tape"
    run, folder = read_golden(golden)
    kept = stage.folder / "now.tape"
    told = ReplayConfiguration(Environment(folder=folder), keep=kept)
    replayed = Replayer(told).replay(run)
    assert replayed.report.verdict == "identical", list(replayed.report.lines())
    now = Run.of_tape(replayed.now)
    seen = ReplayedGolden(golden, run, now, replayed)
    seen.assert_state(2, "order.lines[-1]", "to order 81, 3 left")
    seen.assert_state(4, "left", 0, name="again")
    assert seen.state(1)["left"] == 3
    with pytest.raises(AssertionError, match=r"state after step 2 differs at left\n.*expected: 9"):
        seen.assert_state(2, "left", 9)
    with pytest.raises(AssertionError, match=r"order\.price matches nothing"):
        seen.assert_state(2, "order.price", 1)
    with pytest.raises(AssertionError, match="no state"):
        seen.assert_state(2, "left", 0, name="plan")
