"""`playhead state --at` says what was so at any point, as the program itself noted it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.observed.moments import WANDERER
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_replay.timeline import differences, state_after_step, state_at_time

STEPS = 12
CONFIGURATION = Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.on("/v1/chat/completions", answered, repeat=True)
        yield server


def answered(request: Request):
    return json_reply(openai_chat.completion(f"to {request.json['messages'][-1]['content']}"))


class Wandering:
    """A recorded run of the program, and what was so after each of its steps."""

    def __init__(self, folder: Path, provider: ScriptedServer, level: str, seed: int) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "wanderer.py").write_text(WANDERER)
        truth = folder / "truth.json"
        variables = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k", "TRUTH": str(truth)}
        self.home = Home(folder, variables)
        words = ("record", "--level", level, "wanderer.py", str(seed), str(STEPS))
        done = self.home.playhead(*words, cwd=self.work)
        assert done.returncode == 0, done.stderr
        self.truth: list[dict[str, Any]] = json.loads(truth.read_text())

    def shown(self, step: int) -> dict[str, Any]:
        done = self.home.playhead("state", f"wanderer-1:{step}", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def held(shown: dict[str, Any]) -> dict[str, Any]:
    """A moment as the program notes it."""
    said = [one for one in shown["conversations"] if one["lane"] == "main"]
    messages = [
        {"role": message["role"], "content": "".join(part["content"] for part in message["parts"])}
        for one in said
        for message in (*one["input_messages"], *one["output_messages"])
    ]
    files = {
        one["path"]: one["data"]["text"]
        for one in shown["files"]
        if one["kind"] == "file" and one["path"] != "kept.db"
    }
    files.pop("wanderer.py", None)  # a program may be read as a file
    [rows] = [
        table["rows"]
        for one in shown["databases"]
        for table in one["tables"]
        if one["path"] == "kept.db" and one["inexact"] is None
    ] or [[]]
    states = {one["name"]: one["value"] for one in shown["states"]}
    return {
        "messages": messages,
        "files": files,
        "stdout": shown["stdout"]["text"],
        "states": states,
        "rows": rows,
    }


@pytest.mark.parametrize(
    ("level", "seed"),
    [("causal", 0), ("strict", 1)]
    + [
        pytest.param(level, seed, marks=pytest.mark.acceptance)
        for seed in range(2, 12)
        for level in ("causal", "strict")
    ],
)
def test_what_was_so_is_what_the_program_noted(
    tmp_path: Path, provider: ScriptedServer, level: str, seed: int
):
    run = Wandering(tmp_path, provider, level, seed)
    found = [held(run.shown(step)) for step in range(STEPS + 1)]
    assert found == run.truth


def test_a_recording_at_exchanges_says_what_it_left_out(tmp_path: Path, provider: ScriptedServer):
    run = Wandering(tmp_path, provider, "exchanges", 3)
    shown = run.shown(STEPS)
    assert held(shown)["messages"] == run.truth[STEPS]["messages"]
    assert held(shown)["states"] == run.truth[STEPS]["states"]
    assert shown["files"] == []
    said = "no files: wanderer-1 was recorded without file changes and without snapshots"
    others = "no databases: they are recorded at the levels causal and strict"
    assert shown["left_out"] == [others, said]
    text = run.home.playhead("state", "wanderer-1").stdout
    assert said in text


@pytest.fixture(scope="module")
def wandering(tmp_path_factory: pytest.TempPathFactory, provider: ScriptedServer) -> Wandering:
    return Wandering(tmp_path_factory.mktemp("wandering"), provider, "causal", 0)


def test_rows_are_in_the_answers_of_the_query_api(wandering: Wandering):
    path = "/v1/runs/wanderer-1/moment"
    with (
        Receiver(wandering.home.data_dir, CONFIGURATION) as receiver,
        httpx.Client(base_url=receiver.query_endpoint, timeout=60) as api,
    ):
        for step in range(0, STEPS + 1, 3):
            [database] = api.get(path, params={"after": step}).json()["databases"]
            [table] = database["tables"]
            assert (database["path"], database["inexact"]) == ("kept.db", None)
            assert (table["columns"], table["rows"]) == (["at", "text"], wandering.truth[step]["rows"])
        rows = wandering.truth[STEPS]["rows"]
        [database] = api.get(path, params={"after": STEPS, "rows": 1}).json()["databases"]
        assert (database["tables"][0]["rows"], database["tables"][0]["row_count"]) == (
            rows[:1],
            len(rows),
        )
        assert api.get(path, params={"after": STEPS, "rows": 1001}).status_code == 422


def test_moments_by_time_and_between_two(wandering: Wandering):
    run = wandering.home.run("wanderer-1")
    for step in run.steps:
        assert state_at_time(run, step.span.started_ns).step == step.number
        assert state_at_time(run, step.span.started_ns - 1).step == step.number - 1
    first, second = state_after_step(run, 4), state_after_step(run, 5)
    changed = {(one.kind, one.name) for one in differences(first, second)}
    before, after = wandering.truth[4], wandering.truth[5]
    assert {name for kind, name in changed if kind == "file"} == {
        name
        for name in {*before["files"], *after["files"]}
        if before["files"].get(name) != after["files"].get(name)
    }
    assert (("database", "kept.db") in changed) is (before["rows"] != after["rows"])
    assert ("conversation", "main") in changed
    assert differences(first, state_after_step(run, 4)) == []
    done = wandering.home.playhead("diff", "--state", "wanderer-1:4", "wanderer-1:5", "--json")
    assert done.returncode == 1
    assert len(json.loads(done.stdout)["changes"]) == len(changed)
    assert wandering.home.playhead("diff", "--state", "wanderer-1:4", "wanderer-1:4").returncode == 0


def test_a_point_that_is_none_is_an_error(wandering: Wandering):
    run = wandering
    done = run.home.playhead("state", f"wanderer-1:{STEPS + 1}")
    assert done.returncode == 2
    assert f"wanderer-1 has steps 1 to {STEPS}, not {STEPS + 1}" in done.stderr
    done = run.home.playhead("state", "wanderer-1", "--at", "2026-99-25T10:00")
    assert done.returncode == 2
    assert "is not a time" in done.stderr
