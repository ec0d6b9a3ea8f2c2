"""The paths for agents, and those for operators, against whoever means no good."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from playhead_core.control.messages import LISTEN, REPORT
from playhead_receiver.auth import TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver

RUN = "ab" * 16
REPORTED = {"instance": "01" * 16, "trace_id": RUN, "number": 1}


@pytest.fixture
def tokens(tmp_path: Path) -> dict[str, str]:
    book = TokenBook(AccessFile(tmp_path))
    made = {name: book.create(name, [name])[1] for name in ("ingest", "read", "control")}
    made["other"] = book.create("other", ["ingest", "read", "control"], tenant="other")[1]
    return made


@pytest.fixture
def receiver(
    tmp_path: Path, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Receiver]:
    monkeypatch.setattr("playhead_receiver.control.hub.SILENT_S", 600.0)
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(tmp_path, Configuration(addresses, access=Access(guarded=True))) as running:
        yield running


def post(url: str, body: Any, token: str = "") -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    return httpx.post(url, content=content, headers=headers, timeout=60)


@pytest.mark.parametrize("path", [REPORT, LISTEN])
def test_an_agent_needs_the_scope_of_who_sends(receiver: Receiver, tokens: dict[str, str], path: str):
    url = receiver.http_endpoint + path
    assert post(url, REPORTED).status_code == 401
    assert post(url, REPORTED, tokens["control"]).status_code == 403
    for bad in (b"", b"{", b"[]", b"\xff", b'{"instance": 5}', b"[" * 100_000):
        assert post(url, bad, tokens["ingest"]).status_code == 400
    assert post(url, b" " * (9 << 20), tokens["ingest"]).status_code == 413


def test_what_an_agent_says_is_shown_to_its_tenant_alone(receiver: Receiver, tokens: dict[str, str]):
    url = receiver.http_endpoint + REPORT
    assert post(url, REPORTED, tokens["ingest"]).status_code == 200
    asks = f"{receiver.query_endpoint}/v1/runs/{RUN}"
    by = {name: {"authorization": f"Bearer {token}"} for name, token in tokens.items()}
    assert httpx.get(f"{asks}/control", headers=by["read"]).json()["processes"]
    assert httpx.get(f"{asks}/control", headers=by["other"]).status_code == 404
    assert httpx.get(f"{asks}/control", headers=by["ingest"]).status_code == 403
    assert post(f"{asks}/pause", {}, tokens["other"]).status_code == 404
    assert post(f"{asks}/pause", {}, tokens["read"]).status_code == 403
    processes = f"{receiver.query_endpoint}/v1/control"
    assert len(httpx.get(processes, headers=by["read"]).json()["processes"]) == 1
    assert httpx.get(processes, headers=by["other"]).json() == {"processes": []}


def test_an_order_reaches_an_agent_that_listens(receiver: Receiver, tokens: dict[str, str]):
    said = {**REPORTED, "agent": "x"}
    assert post(receiver.http_endpoint + REPORT, said, tokens["ingest"]).status_code == 200
    url = f"{receiver.query_endpoint}/v1/runs/{RUN}/pause"
    given = post(url, {"by": "anna", "wait_s": 0}, tokens["control"])
    assert given.status_code == 200, given.text
    assert not given.json()["taken"]
    assert given.json()["lease"]["holder"] == "anna via control"
    listening = {"instance": REPORTED["instance"], "wait_s": 5}
    (order,) = post(receiver.http_endpoint + LISTEN, listening, tokens["ingest"]).json()["orders"]
    assert (order["what"], order["by"], order["trace_id"]) == ("pause", "anna via control", RUN)
    taken = {**said, "number": 2, "taken": order["number"]}
    assert post(receiver.http_endpoint + REPORT, taken, tokens["ingest"]).status_code == 200
    listening = {**listening, "taken": order["number"], "wait_s": 0}
    assert post(receiver.http_endpoint + LISTEN, listening, tokens["ingest"]).json()["orders"] == []


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("pause", {"lease_s": -1}),
        ("pause", {"lease_s": 1e12}),
        ("pause", {"unknown": 1}),
        ("edit", {"edits": []}),
        ("edit", {"edits": [{"path": "x" * 3000}]}),
        ("answer", {"body": "x", "status": 7}),
        ("answer", {}),
        ("breakpoints", {"on": ["error"] * 101}),
        ("breakpoints", {"on": ["nonsense"]}),
        ("limits", {"stop": ["x" * 400]}),
        ("step", {"halt": "9"}),
    ],
)
def test_orders_without_sense_are_refused(
    receiver: Receiver, tokens: dict[str, str], what: str, body: dict[str, Any]
):
    assert post(receiver.http_endpoint + REPORT, REPORTED, tokens["ingest"]).status_code == 200
    refused = post(f"{receiver.query_endpoint}/v1/runs/{RUN}/{what}", body, tokens["control"])
    assert refused.status_code == 422, refused.text
    assert refused.json()["detail"]


def test_large_orders_are_refused(receiver: Receiver, tokens: dict[str, str]):
    assert post(receiver.http_endpoint + REPORT, REPORTED, tokens["ingest"]).status_code == 200
    url = f"{receiver.query_endpoint}/v1/runs/{RUN}/edit"
    said = {"edits": [{"path": "x", "value": "y" * (5 << 20)}]}
    refused = post(url, said, tokens["control"])
    assert (refused.status_code, refused.json()["detail"]) == (422, "an order is larger than 4 MiB")
    assert post(url, b" " * (9 << 20), tokens["control"]).status_code == 413
    pieces = (b" " * (1 << 20) for _ in range(9))
    headers = {"authorization": f"Bearer {tokens['control']}"}
    assert httpx.post(url, content=pieces, headers=headers, timeout=60).status_code == 400
