"""A program marks checkpoints: they are listed, shown, compared, edited, and gone back to."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

AGENT = f"""
import playhead
{ASKING}
class Budget:
    left = 4

budget, plan = Budget(), ["begin"]

def put(kept):
    budget.left = kept["left"]

playhead.register_state("plan", lambda: plan)
playhead.register_state("budget", lambda: {{"left": budget.left}}, put)
for number in range(3):
    plan.append(asked(f"step {{number}}, {{budget.left}} left"))
    budget.left -= 1
    given = playhead.checkpoint({{"number": number}}, label=f"after {{number}}")
    assert given == {{"number": number}}
assert playhead.checkpoint() is None
print(budget.left, *plan, sep="|")
"""

CALLS = """
import openai
import playhead

client = openai.OpenAI()
said = []
playhead.register_state("said", lambda: said, every_calls=2)
for number in range(5):
    answer = client.chat.completions.create(
        model="gpt-5.5", messages=[{"role": "user", "content": f"step {number}"}]
    )
    said.append(answer.choices[0].message.content)
print(len(said))
"""

BROKEN = """
import playhead

def broken():
    raise ValueError("no state today")

playhead.register_state("broken", broken)
playhead.register_state("fine", lambda: 1)
playhead.checkpoint(label="anyway")
print("on")
"""


def answered(request: Request):
    return json_reply(openai_chat.completion(f"to {request.json['messages'][-1]['content']}"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("checkpoints")
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answered, repeat=True)
        made = Home(folder, {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"})
        for name, text in (("agent", AGENT), ("calls", CALLS), ("broken", BROKEN)):
            (folder / f"{name}.py").write_text(text)
            done = made.playhead("record", f"{name}.py")
            assert done.returncode == 0, done.stderr
        yield made


def listed(home: Home, run: str):
    return json.loads(home.playhead("checkpoints", run, "--json").stdout)["checkpoints"]


def states_at(home: Home, point: str):
    shown = json.loads(home.playhead("state", point, "--json").stdout)
    return {one["name"]: one["value"] for one in shown["states"]}


def test_they_are_listed_with_what_belongs_to_them(home: Home):
    found = listed(home, "agent-1")
    assert [(one["name"], one["kind"], one["label"], one["step"]) for one in found] == [
        ("c1", "manual", "after 0", 1),
        ("c2", "manual", "after 1", 2),
        ("c3", "manual", "after 2", 3),
        ("c4", "manual", None, 3),
    ]
    assert found[0]["states"] == ["checkpoint", "plan", "budget"]
    assert found[3]["states"] == ["plan", "budget"]
    text = home.playhead("checkpoints", "agent-1").stdout
    assert "c2" in text
    assert "after 1" in text


def test_what_was_so_at_each_is_shown_and_compared(home: Home):
    assert states_at(home, "agent-1:c2") == {
        "checkpoint": {"number": 1},
        "budget": {"left": 2},
        "plan": ["begin", "to step 0, 4 left", "to step 1, 3 left"],
    }
    done = home.playhead("diff", "--state", "agent-1:c1", "agent-1:c2", "--json")
    assert done.returncode == 1
    changed = {(one["name"], one["path"]) for one in json.loads(done.stdout)["changes"]}
    assert {("budget", "$.left"), ("plan", "$[2]"), ("checkpoint", "$.number")} <= changed


def test_a_replay_makes_the_same(home: Home):
    status, report = home.report("agent-1")
    assert status == 0, report
    assert home.report("calls-1")[0] == 0


def test_a_rollback_goes_on_from_there_and_the_old_line_stays(home: Home):
    done = home.playhead("rollback", "agent-1", "--to", "c1")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1|begin|to step 0, 4 left|to step 1, 3 left|to step 2, 2 left\n"
    made = home.runs()[0]
    assert (made["mode"], made["steps"]) == ("fork", 3)
    assert made["origin"].endswith(":c1")
    assert len(listed(home, "agent-1")) == 4
    assert [one["label"] for one in listed(home, made["name"])] == [
        "after 0",
        "after 1",
        "after 2",
        None,
    ]
    shown = home.playhead("show", made["name"]).stdout
    assert "fork of agent-1:c1" in shown


def test_a_fork_edits_a_registered_state_through_its_setter(home: Home):
    done = home.playhead("fork", "agent-1:c2", "--edit", "state.left=9")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "8|begin|to step 0, 4 left|to step 1, 3 left|to step 2, 9 left\n"
    refused = home.playhead("fork", "agent-1:c4", "--edit", "request.model=x")
    assert refused.returncode == 2
    assert "at a checkpoint a fork can only edit a state: there is no request" in refused.stderr


def test_every_so_many_calls_one_is_made(home: Home):
    found = listed(home, "calls-1")
    assert [(one["kind"], one["step"], one["states"]) for one in found] == [
        ("auto", 1, ["said"]),
        ("auto", 3, ["said"]),
    ]
    assert states_at(home, "calls-1:c2") == {"said": [f"to step {number}" for number in range(3)]}


def test_a_state_that_cannot_be_read_hurts_nobody(home: Home):
    assert listed(home, "broken-1")[0]["states"] == ["fine"]
    assert home.run("broken-1").outputs.stdout.data == b"on\n"


def test_facts_between_two_moments(home: Home):
    done = home.playhead("events", "agent-1", "--between", "c1", "c2", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    names = [one["name"] for one in found]
    assert names.count("playhead.checkpoint") == 1
    assert names.count("playhead.exchange.request") == 1
    assert [one["step"] for one in found if one["name"] == "playhead.exchange.request"] == [2]
    states = home.playhead("events", "agent-1", "--name", "playhead.state").stdout
    assert len(states.splitlines()) == 11


def test_one_that_is_not_there_is_named(home: Home):
    done = home.playhead("rollback", "agent-1", "--to", "c9")
    assert done.returncode == 2
    assert "agent-1 has no checkpoint c9" in done.stderr
    assert "it has c1 to c4" in done.stderr
