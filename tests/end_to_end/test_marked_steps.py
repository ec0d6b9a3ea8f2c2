"""A program marks its steps: each is a span and one fact, and a replay runs it as ever."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

from playhead_semconv import attributes as a
from playhead_semconv import events as e

AGENT = f"""
import asyncio
import playhead
{ASKING}
@playhead.step(decision=lambda state: state["next"], tool=lambda state: state["missing"])
def plan(state):
    return {{**state, "next": asked(state["goal"])}}

@playhead.step(name="act")
async def acting(state, times):
    await asyncio.sleep(0)
    return [state["next"]] * times

@playhead.step
def fails(state):
    raise LookupError("nothing there")

import threading
quiet = threading.Thread(target=playhead.checkpoint)
quiet.start()
quiet.join()
state = plan({{"goal": "find it"}})
print(asyncio.run(acting(state, times=2)))
try:
    fails(state)
except LookupError as problem:
    print(problem)
try:
    playhead.step(name="never")(i for i in ())
except TypeError as problem:
    print(problem)
print(plan.__name__)
"""


def answered(request: Request):
    return json_reply(openai_chat.completion(f"to {request.json['messages'][-1]['content']}"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("steps")
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answered, repeat=True)
        made = Home(folder, {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"})
        (folder / "agent.py").write_text(AGENT)
        done = made.playhead("record", "agent.py")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            "['to find it', 'to find it']",
            "nothing there",
            "playhead.step marks a function, a coroutine function or a generator",
            "plan",
        ]
        yield made


def test_each_is_one_fact_with_input_output_and_choice(home: Home):
    run = home.run("agent-1")
    facts = list(run.tape.named(e.PLAYHEAD_STEP))
    assert [fact.attributes.get(a.PLAYHEAD_STEP_NAME) for fact in facts] == ["plan", "act", "fails"]
    assert [fact.attributes.get(a.PLAYHEAD_STEP_DECISION) for fact in facts] == [
        "to find it",
        None,
        None,
    ]
    assert all(a.PLAYHEAD_STEP_TOOL not in fact.attributes for fact in facts)
    assert facts[2].attributes[a.ERROR_TYPE] == "LookupError"
    bodies = [json.loads(run.tape.read(fact.body)) for fact in facts if fact.body is not None]
    assert bodies[0] == {
        "input": {"args": [{"goal": "find it"}], "kwargs": {}},
        "output": {"goal": "find it", "next": "to find it"},
    }
    assert bodies[1]["input"]["kwargs"] == {"times": 2}
    assert bodies[2]["output"] is None


def test_a_lane_that_says_nothing_else_is_declared(home: Home):
    assert home.playhead("record", "--level", "exchanges", "agent.py").returncode == 0
    tape = home.run("last").tape
    mark = next(tape.named(e.PLAYHEAD_CHECKPOINT))
    assert mark.lane in {fact.lane for fact in tape.named(e.PLAYHEAD_LANE)}


def test_each_is_a_span_around_what_it_asked(home: Home):
    run = home.run("agent-1")
    spans = {span.name: span for span in run.spans}
    assert [child.attributes.get(a.HTTP_REQUEST_METHOD) for child in spans["plan"].children] == ["POST"]
    assert spans["plan"].attributes[a.PLAYHEAD_STEP_DECISION] == "to find it"
    assert spans["fails"].failed
    assert "plan" in home.playhead("show", "agent-1").stdout


def test_a_replay_runs_them_as_ever(home: Home):
    status, report = home.report("agent-1")
    assert status == 0, report


def test_no_content_means_no_input_and_no_choice(home: Home):
    env = {**home.environ, "PLAYHEAD_CONTENT": "metadata"}
    assert home.playhead("record", "agent.py", env=env).returncode == 0
    run = home.run("last")
    facts = list(run.tape.named(e.PLAYHEAD_STEP))
    assert all(a.PLAYHEAD_STEP_DECISION not in fact.attributes for fact in facts)
    assert [fact.body.digest for fact in facts if fact.body is not None] == [b""] * 3
