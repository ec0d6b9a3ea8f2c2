"""What a graph, its memory and sessions put into a store is listed with the run, and read and gone back
to without the store: its file is not there any longer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.long import long
from support.observed.asking import ASKING
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

from playhead_checkpoint import SqliteCheckpoints

APART = Path(__file__).parents[2] / ".venv" / "apart-langgraph"

SECRET = "sk-proj-0f3a9c2b7d61e84f5a0b9c8d7e6f5a4b"

AGENT = f"""
import asyncio
import operator
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.langgraph import PlayheadSaver, PlayheadStore
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
    memory = PlayheadStore(store)
    memory.put(("users", "ada"), "likes", {{"colour": "green"}})
    memory.put(("users", "ada"), "key", {{"api_key": "{SECRET}"}})
    PlayheadSaver(store).copy_thread("one", "two")
"""

ONE, TWO, SESSION = ('langgraph ["one", ""]', 'langgraph ["two", ""]', 'openai-agents {"session": "s"}')
LIKES, KEY = ('memory {"memory": ["users", "ada"]} likes', 'memory {"memory": ["users", "ada"]} key')


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
        (folder / "c.sqlite").rename(kept(made))
        yield made


def kept(home: Home) -> Path:
    """Where the file of the store is put away: no command of playhead is told."""
    return home.folder.with_name("kept.sqlite")


def states(home: Home, point: str) -> dict[str, Any]:
    found = json.loads(home.playhead("state", point, "--json").stdout)
    return {one["name"]: one["value"] for one in found["states"]}


def listed(home: Home, run: str):
    return json.loads(home.playhead("checkpoints", run, "--json").stdout)["checkpoints"]


def test_they_are_listed_with_what_the_store_says_of_them(home: Home):
    found = listed(home, "agent-1")
    assert {one["kind"] for one in found} == {"framework"}
    labels = ["langgraph"] * 4 + ["openai-agents", "memory", "memory"] + ["langgraph"] * 4
    assert [one["label"] for one in found] == labels
    with SqliteCheckpoints(kept(home)) as store:
        for one in found:
            there = store.checkpoint(bytes.fromhex(one["stored"]["id"]))
            assert one["stored"] == {
                "id": there.id.hex(),
                "parent": there.lineage.parent.hex() or None,
                "thread": there.lineage.thread,
                "name": there.lineage.name,
                "size_bytes": there.size_bytes,
                "digest": there.digest.hex(),
                "copied": True,
            }
            if one in found[:5]:  # of memory and copies the store says nothing of this run
                assert (one["span_id"] or "") == there.lineage.span.hex()
    assert [one["stored"]["parent"] for one in found[1:4]] == [one["stored"]["id"] for one in found[:3]]
    assert found[2]["stored"]["id"] in home.playhead("checkpoints", "agent-1").stdout


def test_states_are_read_and_compared_without_the_store(home: Home):
    end = states(home, "agent-1")
    assert end.keys() == {ONE, SESSION, LIKES, KEY, TWO}
    assert end[ONE]["checkpoint"]["channel_values"]["said"] == ["to first", "to second"]
    assert end[TWO]["checkpoint"] == end[ONE]["checkpoint"]
    assert end[SESSION]["items"] == [{"role": "user", "content": "hi"}]
    assert end[LIKES]["value"] == {"colour": "green"}
    assert SECRET not in json.dumps(end) and end[KEY]["value"].keys() == {"api_key"}
    third = listed(home, "agent-1")[2]
    assert third["stored"]["copied"]
    before = states(home, f"agent-1:{third['name']}")
    assert before.keys() == {ONE}
    assert before[ONE]["checkpoint"]["channel_values"]["said"] == ["to first"]
    told = json.loads(home.playhead("diff", "--state", "agent-1:c3", "agent-1:c4", "--json").stdout)[
        "changes"
    ]
    assert [one["name"] for one in told if one["kind"] == "state"] == [ONE]


def test_a_store_is_made_anew_of_the_copies(home: Home):
    into = home.folder.with_name("again.sqlite")
    done = home.playhead("checkpoints", "agent-1", "--into", str(into))
    assert done.returncode == 0 and "left out" not in done.stderr, done.stderr
    with SqliteCheckpoints(kept(home)) as were, SqliteCheckpoints(into) as are:
        assert are.damages() == []
        assert len(are.checkpoints()) == len(were.checkpoints()) == 11
        for one in were.checkpoints():
            contents, again = were.contents(one.id), are.contents(one.id)
            if one.lineage.name == "key":
                assert again.state["value"] != contents.state["value"] == {"api_key": SECRET}
            else:
                assert again == contents
        assert any(were.notes(one.id) for one in were.checkpoints())
    again = home.playhead("checkpoints", "agent-1", "--into", str(into))
    assert again.returncode == 2 and "already exists" in again.stderr


def test_a_replay_puts_the_same(home: Home):
    status, report = home.report("agent-1")
    assert status == 0, report


@pytest.mark.parametrize("by", [long("id"), "name"])
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


OWN = """
from playhead_checkpoint import Lineage, SqliteCheckpoints
with SqliteCheckpoints("own.sqlite") as store:
    store.put({"plan": ["ask", "answer"]}, Lineage(labels=("plan",)))
    store.put({"plan": ["answer"]})
"""


@pytest.mark.parametrize(
    ("setting", "value", "copied"),
    [
        ("LEVEL", "exchanges", True),
        ("CHECKPOINT_COPIES_BYTES", "0", False),
        ("CONTENT", "metadata", False),
    ],
)
def test_what_a_program_puts_by_itself(tmp_path: Path, setting: str, value: str, copied: bool):
    home = Home(tmp_path, {f"PLAYHEAD_{setting}": value})
    (tmp_path / "own.py").write_text(OWN)
    done = home.playhead("record", "own.py")
    assert done.returncode == 0, done.stderr
    (tmp_path / "own.sqlite").unlink()
    first, second = listed(home, "own-1")
    assert (first["kind"], first["label"], second["label"]) == ("manual", "plan", None)
    assert first["stored"]["copied"] is second["stored"]["copied"] is copied
    shown = json.loads(home.playhead("state", "own-1", "--json").stdout)
    if copied:
        found = {one["name"]: one["value"]["plan"] for one in shown["states"]}
        assert found == {"checkpoint plan": ["ask", "answer"], "checkpoint manual": ["answer"]}
    else:
        assert shown["states"] == []
        assert any(one.endswith(": only its store has it") for one in shown["left_out"])
