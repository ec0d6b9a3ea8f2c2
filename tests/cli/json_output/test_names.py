"""The same thing has the same name, and the same value, in ``--json`` and in the query API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import BaseModel
from support.starting.cli import CommandLine, refund, store_run
from support.starting.running import until

from playhead_cli.json_output import changes, runs, shown
from playhead_receiver.api.models import runs as models
from playhead_receiver.api.models import spans
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.queries.run_items import RunItem
from playhead_receiver.server import Receiver
from playhead_replay.derived.findings import VERSION

ALIKE: list[tuple[Any, type[BaseModel], set[str], set[str]]] = [
    (runs.PrintedRuns, models.RunPage, {"schema_version"}, {"next"}),
    (changes.PrintedNote, models.NoteItem, set(), {"own"}),
    (shown.PrintedSpan, spans.WholeSpan, {"children"}, {"trace_id", "links", "resource", "scope"}),
    (changes.PrintedDeletedThings, models.Removed, {"fork_folders"}, {"wiped"}),
]
"""What two types describe, and the fields that only the one and only the other has. Most have one."""


def fields(printed: Any) -> set[str]:
    return set(printed.__required_keys__ | printed.__optional_keys__)


@pytest.mark.parametrize(
    ("printed", "model", "more", "less"), ALIKE, ids=[model.__name__ for _, model, _, _ in ALIKE]
)
def test_the_same_thing_has_the_same_fields(
    printed: Any, model: type[BaseModel], more: set[str], less: set[str]
):
    assert more <= fields(printed) and less <= set(model.model_fields)
    assert fields(printed) - more == set(model.model_fields) - less


def test_a_run_and_a_step_have_the_names_that_they_have_in_lists():
    more = {"schema_version", "command", "exit", "tool_calls", "scores", "failures", "status_reason"}
    more |= {"reports", "decisions", "session", "transitions"}
    more |= {"loops", "signals", "unrecorded"}
    of_run = fields(shown.PrintedWholeRun) - more
    assert of_run <= fields(RunItem)
    of_step = fields(shown.PrintedStep) - {"number", "attempts", "retries"}
    assert of_step <= set(models.SpanLine.model_fields)
    said = set(spans.SpanMessages.model_fields) - {"span_id", "trace_id", "elsewhere"}
    assert said <= fields(shown.PrintedWholeStep)
    assert "exchanges" in fields(shown.PrintedWholeStep) & set(spans.SpanExchanges.model_fields)


@pytest.fixture
def api(playhead: CommandLine) -> Iterator[httpx.Client]:
    """The query API of two runs."""
    for number in (1, 2):
        store_run(playhead.data_dir, refund(bytes([number]) * 16, bytes([number]) * 16))
    ports = Configuration(Addresses(http_port=0, grpc_port=None, query_port=0))
    with Receiver(playhead.data_dir, ports) as receiver:
        while receiver.store.index():
            pass
        until(lambda: not receiver.store.underived(VERSION), "findings are derived")
        with httpx.Client(base_url=receiver.query_endpoint, timeout=60) as client:
            yield client


def printed(playhead: CommandLine, *words: str) -> list[Any]:
    return [json.loads(line) for line in playhead(*words, "--json").lines]


def test_what_is_printed_is_what_the_query_api_answers(playhead: CommandLine, api: httpx.Client):
    [listed] = printed(playhead, "ls")
    assert listed["runs"] == api.get("/v1/runs").json()["runs"]
    [compared] = printed(playhead, "diff", "refund-1", "refund-2")
    both = {"left": "refund-1", "right": "refund-2"}
    assert compared == api.get("/v1/diff", params=both).json()
    hits = [{**one, "schema_version": 1} for one in api.get("/v1/search?q=order").json()["hits"]]
    assert hits and printed(playhead, "search", "order") == hits
    [summed] = printed(playhead, "stats")
    answered = api.get("/v1/stats", params={"by": "agent"}).json()
    assert summed == {"schema_version": 1, **answered}


def test_a_shown_run_and_step_have_the_values_that_the_query_api_has(
    playhead: CommandLine, api: httpx.Client
):
    [run] = printed(playhead, "show", "refund-1")
    item = api.get("/v1/runs/refund-1/summary").json()
    counted = {"steps", "spans"}
    assert (len(run["steps"]), run["origin"] or "") == (item["steps"], item["origin"])
    for name in set(run) & set(item) - counted - {"origin"}:
        assert (name, run[name]) == (name, item[name])
    [step] = printed(playhead, "show", "refund-1:1")
    place = f"/v1/spans/{step['trace_id']}/{step['span_id']}"
    assert step["exchanges"] == api.get(f"{place}/exchanges").json()["exchanges"]
