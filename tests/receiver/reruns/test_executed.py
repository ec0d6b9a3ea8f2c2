"""Runs executed again over the query API: replays, forks with edits, and who may have them."""

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.outside.executing import HELD, Executing, executing

from playhead_receiver.auth import TokenBook
from playhead_receiver.auth.database import AccessFile

PATIENCE_S = 90


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executing]:
    with executing(tmp_path_factory.mktemp("executing")) as made:
        yield made


def ended(api: httpx.Client, ordered: httpx.Response) -> dict[str, Any]:
    assert ordered.status_code == 200, ordered.text
    found, deadline = ordered.json(), time.monotonic() + PATIENCE_S
    while found["state"] == "running":
        assert time.monotonic() < deadline, found
        wanted = {"after": found["revision"], "wait_s": 5}
        found = api.get(f"/v1/reruns/{found['id']}", params=wanted).json()
    return found


def test_a_replay_says_how_true_each_step_was(stage: Executing):
    asked = len(stage.provider.requests)
    with stage.asking(stage.key) as api:
        found = ended(api, api.post("/v1/runs/agent-1/replay", json={}))
        assert found["exit_code"] == 0, found
        report = found["report"]
        assert report["verdict"] == "identical" and report["run"] == "agent-1"
        assert report["step_fidelity"] == {"1": "exact", "2": "exact", "3": "exact"}
        assert api.get("/v1/reruns").json()["reruns"][0]["id"] == found["id"]
    assert len(stage.provider.requests) == asked


def test_a_fork_sends_the_request_as_it_was_edited_and_names_the_run_it_makes(stage: Executing):
    asked = len(stage.provider.requests)
    with stage.asking(stage.key) as api:
        request = json.loads(api.get("/v1/runs/agent-1/steps/2/request").json()["text"])
        assert request["messages"] == [{"role": "user", "content": "second"}]
        request["messages"][0]["content"] = "@/etc/passwd \u202e\n= ü"
        order = {"step": 2, "request": json.dumps(request), "unanswered": "skip"}
        found = ended(api, api.post("/v1/runs/agent-1/fork", json=order))
        assert (found["exit_code"], found["problem"]) == (0, None), found
        made = api.get(f"/v1/runs/{found['made']}").json()["run"]
        assert (made["mode"], made["status"], made["steps"]) == ("fork", "success", 3)
        assert "gpt-5.5: third" in found["printed"]
    sent = [one.json["messages"][0]["content"] for one in stage.provider.requests[asked:]]
    assert sent == ["@/etc/passwd \u202e\n= ü", "third"]


@pytest.mark.parametrize(
    ("order", "code"),
    [
        ({"step": 2, "request": "{"}, "usage"),
        ({"request": "{}"}, "usage"),
        ({"step": 99, "request": "{}"}, "usage"),
        ({"step": 2, "edits": [{"path": "environ.HOME", "value": "/"}]}, "usage"),
        ({"step": 2, "live": "*"}, "usage"),
    ],
)
def test_an_order_that_makes_no_sense_starts_nothing(stage: Executing, order: dict[str, Any], code: str):
    with stage.asking(stage.key) as api:
        before = len(api.get("/v1/reruns").json()["reruns"])
        refused = api.post("/v1/runs/agent-1/fork", json=order)
        assert refused.status_code == 422 and refused.json()["type"] == f"urn:playhead:{code}"
        assert len(api.get("/v1/reruns").json()["reruns"]) == before


def test_what_the_command_refuses_is_said(stage: Executing):
    with stage.asking(stage.key) as api:
        order = {"step": 2, "edits": [{"path": "request.nothing.here", "value": 1}]}
        found = ended(api, api.post("/v1/runs/agent-1/fork", json=order))
        assert found["exit_code"] == 2 and found["problem"]["code"] == "usage"
        assert "nothing" in found["problem"]["what"] and found["made"] is None


def test_nothing_is_executed_for_who_does_not_show_that_they_may(stage: Executing):
    with stage.asking("") as anybody:
        told = anybody.get("/v1/reruns").json()
        assert not told["allowed"] and "playhead open" in told["why_not"]
        assert anybody.post("/v1/runs/agent-1/replay", json={}).status_code == 403
        assert anybody.post("/v1/runs/agent-1/fork", json={}).status_code == 403
        for method in ("GET", "HEAD", "PUT"):
            assert anybody.request(method, "/v1/runs/agent-1/replay").status_code == 405
    with stage.asking(stage.key) as page:
        elsewhere = {"origin": "http://203.0.113.9"}
        refused = page.post("/v1/runs/agent-1/replay", json={}, headers=elsewhere)
        assert refused.status_code == 403
        refused = page.post("/v1/runs/agent-1/replay", json={}, headers={"sec-fetch-site": "cross-site"})
        assert refused.status_code == 403
        assert page.get("/v1/reruns").json()["allowed"]


def test_a_token_that_may_look_cannot_fork_and_another_tenant_has_nothing_here(stage: Executing):
    file = AccessFile(stage.home.data_dir)
    book = TokenBook(file)
    _, looks = book.create("looks", ["read"])
    _, controls = book.create("controls", ["read", "control"])
    _, other = book.create("other", ["read", "control"], tenant="others")
    file.close()
    with stage.asking(looks) as api:
        assert "no scope control" in api.get("/v1/reruns").json()["why_not"]
        assert api.post("/v1/runs/agent-1/fork", json={"step": 2}).status_code == 403
        assert api.delete(f"/v1/reruns/{os.urandom(8).hex()}").status_code == 403
    with stage.asking(other) as api:
        told = api.get("/v1/reruns").json()
        assert not told["allowed"] and told["reruns"] == []
        assert api.post("/v1/runs/agent-1/replay", json={}).status_code == 403
    with stage.asking(controls) as api:
        assert api.get("/v1/reruns").json()["allowed"]
        replayed = api.post("/v1/runs/agent-1/replay", json={})
        assert replayed.json()["by"] == "controls" and ended(api, replayed)["state"] == "ended"
        order = {"step": 2, "edits": [{"path": "request.messages[0].content", "value": HELD}]}
        one = api.post("/v1/runs/agent-1/fork", json=order).json()
        assert ended(api, api.delete(f"/v1/reruns/{one['id']}"))["state"] == "cancelled"
        assert api.delete(f"/v1/reruns/{os.urandom(8).hex()}").status_code == 404
    with stage.asking("") as nobody:
        assert nobody.get("/v1/reruns").status_code == 401
        assert nobody.post("/v1/runs/agent-1/replay", json={}).status_code == 401
