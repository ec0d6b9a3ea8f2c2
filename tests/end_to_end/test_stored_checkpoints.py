"""Checkpoints that PlayheadSaver and PlayheadSession put are listed with the run, and gone back to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.asking import ASKING
from support.home import Home
from support.scripted import Request, ScriptedServer, json_reply, openai_chat

from playhead_checkpoint import SqliteCheckpoints

APART = Path(__file__).parents[2] / ".venv" / "apart-langgraph"

AGENT = f"""
import asyncio
import operator
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.langgraph import PlayheadSaver
from playhead_checkpoint.openai_agents import PlayheadSession
{ASKING}

class State(TypedDict):
    said: Annotated[list, operator.add]

def first(state):
    return {{"said": [asked("first")]}}

def second(state):
    return {{"said": [asked("second")]}}

built = StateGraph(State)
built.add_node("first", first)
built.add_node("second", second)
built.add_edge(START, "first")
built.add_edge("first", "second")
built.add_edge("second", END)
with SqliteCheckpoints("c.sqlite") as store:
    graph = built.compile(checkpointer=PlayheadSaver(store))
    thread = {{"configurable": {{"thread_id": "one"}}}}
    print(graph.invoke({{"said": []}}, thread, durability="sync")["said"])
    asyncio.run(PlayheadSession("s", store).add_items([{{"role": "user", "content": "hi"}}]))
"""


def answered(request: Request):
    return json_reply(openai_chat.completion(f"to {request.json['messages'][-1]['content']}"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("stored")
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answered, repeat=True)
        environ = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"}
        made = Home(folder, {**environ, "PYTHONPATH": str(APART)})
        (folder / "agent.py").write_text(AGENT)
        done = made.playhead("record", "agent.py")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "['to first', 'to second']\n"
        yield made


def listed(home: Home, run: str):
    return json.loads(home.playhead("checkpoints", run, "--json").stdout)["checkpoints"]


def test_they_are_listed_with_what_the_store_says_of_them(home: Home):
    found = listed(home, "agent-1")
    assert {one["kind"] for one in found} == {"framework"}
    assert [one["label"] for one in found] == ["langgraph"] * 4 + ["openai-agents"]
    with SqliteCheckpoints(home.folder / "c.sqlite") as store:
        for one in found:
            kept = store.checkpoint(bytes.fromhex(one["stored"]["id"]))
            assert one["stored"] == {
                "id": kept.id.hex(),
                "parent": kept.lineage.parent.hex() or None,
                "thread": kept.lineage.thread,
                "name": kept.lineage.name,
                "size_bytes": kept.size_bytes,
                "digest": kept.digest.hex(),
            }
            assert (one["span_id"] or "") == kept.lineage.span.hex()
    assert [one["stored"]["parent"] for one in found[1:4]] == [one["stored"]["id"] for one in found[:3]]
    assert found[2]["stored"]["id"] in home.playhead("checkpoints", "agent-1").stdout


def test_a_replay_puts_the_same(home: Home):
    status, report = home.report("agent-1")
    assert status == 0, report


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_fork_goes_on_from_the_one_that_is_named(home: Home, by: str):
    wanted = listed(home, "agent-1")[2]
    done = home.playhead("fork", "agent-1", "--checkpoint", wanted["stored"][by])
    assert (done.returncode, done.stdout) == (0, "['to first', 'to second']\n"), done.stderr
    made = home.runs()[0]
    assert made["mode"] == "fork"
    assert made["origin"].endswith(f":{wanted['name']}")
    state = json.loads(home.playhead("state", f"agent-1:{wanted['stored'][by]}", "--json").stdout)
    assert state["step"] == wanted["step"]


def test_one_that_the_run_has_not_is_named(home: Home):
    done = home.playhead("fork", "agent-1", "--checkpoint", "0" * 32)
    assert done.returncode == 2
    assert f"agent-1 has no checkpoint {'0' * 32}" in done.stderr
