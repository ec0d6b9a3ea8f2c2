"""Notes of people: stored with author and time, found like scores, withdrawn by their authors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.starting.cli import refund, store_run
from support.starting.running import until

from playhead_receiver.auth import Scope, TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver

PEOPLE: dict[str, tuple[list[Scope], str]] = {
    "ann": (["read", "control"], ""),
    "bob": (["read", "control"], ""),
    "eve": (["read", "control"], "other"),
    "boss": (["admin"], ""),
}
NOTES = "/v1/runs/refund-1/notes"


@pytest.fixture
def people(tmp_path: Path) -> Iterator[dict[str, httpx.Client]]:
    """Clients of a receiver with the run refund-1, by name; eve is of another tenant."""
    store_run(tmp_path, refund())
    file = AccessFile(tmp_path)
    tokens = {
        name: TokenBook(file).create(name, scopes, tenant=tenant)[1]
        for name, (scopes, tenant) in PEOPLE.items()
    }
    file.close()
    ports = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(tmp_path, Configuration(ports, Access(guarded=True))) as receiver:
        clients = {
            name: httpx.Client(
                base_url=receiver.query_endpoint, headers={"authorization": f"Bearer {token}"}
            )
            for name, token in tokens.items()
        }
        yield clients
        for client in clients.values():
            client.close()


def test_a_note_has_its_author_is_found_and_is_withdrawn_by_them_alone(
    people: dict[str, httpx.Client],
):
    ann, bob = people["ann"], people["bob"]

    def runs(query: str) -> list[str]:
        return [one["name"] for one in ann.get("/v1/runs", params={"q": query}).json()["runs"]]

    summary = "/v1/runs/refund-1/summary"
    until(lambda: ann.get(summary).json()["failure_codes"], "its failures are derived")
    before = ann.get(summary).json()
    assert ann.post(NOTES, json={"text": "it asked twice", "author": "mallory"}).status_code == 200
    marked = {"step": 3, "label": "wrong", "text": "another order"}
    listed: list[dict[str, Any]] = ann.post(NOTES, json=marked).json()["notes"]
    ann.post(NOTES, json={"step": 2, "name": "tone", "value": 0.25})
    assert [(one["author"], one["step"], one["name"], one["value"]) for one in listed] == [
        ("ann", None, "note", None),
        ("ann", 3, "correct", 0.0),
    ]
    assert [one["own"] for one in bob.get(NOTES).json()["notes"]] == [False] * 3
    scores = ann.get("/v1/runs/refund-1/scores").json()["scores"]
    assert ("correct", "wrong", "ann", 3) in [
        (one["name"], one["label"], one["evaluator"], one["step"]) for one in scores
    ]
    assert runs("score.correct:wrong") == runs("score.tone<0.5") == ["refund-1"]
    assert runs("score.tone>=0.5") == []
    exported = ann.get("/v1/runs/refund-1/export").text
    assert exported.count("gen_ai.evaluation.result") == 3
    assert ann.get("/v1/runs/refund-1/summary").json() == before  # a note is no part of the run

    path = f"{NOTES}/{listed[1]['id']}"
    assert bob.delete(path).status_code == 403
    assert people["eve"].get(NOTES).status_code == people["eve"].delete(path).status_code == 404
    assert [one["name"] for one in ann.delete(path).json()["notes"]] == ["note", "tone"]
    assert runs("score.correct:wrong") == []
    assert ann.delete(path).status_code == 404
    assert people["boss"].delete(f"{NOTES}/{listed[0]['id']}").status_code == 200


@pytest.mark.parametrize(
    "order", [{}, {"text": " "}, {"value": 1}, {"step": 99, "text": "x"}, {"label": "maybe"}]
)
def test_a_note_that_says_nothing_is_refused(people: dict[str, httpx.Client], order: dict[str, Any]):
    assert people["ann"].post(NOTES, json=order).status_code == 422
    assert people["ann"].get(NOTES).json()["notes"] == []
