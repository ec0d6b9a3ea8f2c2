"""Runs are compared with workflows of any text: shipped ones, and hostile ones within bounds."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from playhead_analysis.workflows.definition import MOST_BYTES, shipped_names


def test_shipped_workflows_are_listed_and_each_can_be_asked_by_name_or_text(api: httpx.Client):
    shipped = api.get("/v1/workflows").json()["workflows"]
    assert [one["name"] for one in shipped] == shipped_names()
    for one in shipped:
        named = api.post("/v1/conform", json={"name": one["name"]})
        assert named.json()["workflow"] == one["name"] and named.json()["runs"] == 1
        assert api.post("/v1/conform", json={"file": one["file"]}).json() == named.json()
        assert one["description"]


MANY = "\n".join(f'[[action]]\nname = "{number}"\nmatch = ["*"]' for number in range(200))
CHAIN = "\n".join(f'[[transition]]\nfrom = "{at}"\nto = "{at + 1}"' for at in range(199))
REFUSED: dict[str, tuple[Any, int, str]] = {
    "nothing": ({}, 422, "name of a workflow or a file"),
    "both": ({"name": "refactoring", "file": "name = 'x'"}, 422, "name of a workflow or a file"),
    "a file of the machine": ({"name": "/etc/hostname"}, 422, "no workflow is named"),
    "a way out": ({"name": "../shipped/refactoring"}, 422, "no workflow is named"),
    "not TOML": ({"file": "name = "}, 422, "not a TOML file"),
    "deep": ({"file": "a = " + "[" * 5000}, 422, "not a TOML file"),
    "large": ({"file": "#" * (MOST_BYTES + 1)}, 422, ""),
    "large in bytes": ({"file": "#" + "\u00e9" * (MOST_BYTES - 1)}, 422, "larger than 256 KiB"),
    "huge": ({"file": "#" * (9 << 20)}, 413, "8 MiB"),
    "a half character": ({"file": "name = '\ud800'"}, 422, ""),
    "another word": ({"name": "refactoring", "query": "x"}, 422, ""),
    "a list": ([1], 422, ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_hostile_workflow_is_refused(api: httpx.Client, case: str):
    body, status, said = REFUSED[case]
    headers = {"content-type": "application/json"}
    answer = api.post("/v1/conform", content=json.dumps(body), headers=headers)
    assert answer.status_code == status, answer.text
    assert said in answer.text and len(answer.content) < 5000


def test_a_workflow_that_would_take_long_is_refused(api: httpx.Client, monkeypatch: pytest.MonkeyPatch):
    slow = {"file": f'name = "slow"\n{MANY}\n{CHAIN}'}
    assert api.post("/v1/conform", json=slow).status_code == 200
    monkeypatch.setattr("playhead_analysis.workflows.conformance.MOST_WORK", 30_000)
    answer = api.post("/v1/conform", json=slow)
    assert (answer.status_code, "too many steps" in answer.text) == (422, True)
    assert api.post("/v1/conform", json={"name": "refactoring"}).status_code == 200
    monkeypatch.setattr("playhead_receiver.api.routes.analysis.MOST_S", -1.0)
    assert "takes too long" in api.post("/v1/conform", json=slow).text
