"""`playhead stats`: sums over runs, by agent, model or day."""

from __future__ import annotations

import json

import msgspec
import pytest
from pydantic import TypeAdapter
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.handmade import HandMade

from playhead_receiver.queries.sums import RunStats


@pytest.fixture
def two(playhead: CommandLine) -> CommandLine:
    """A data directory with a failed run of eleven steps and a successful one of one step."""
    store_run(playhead.data_dir, refund())
    made = HandMade(b"b" * 16, b"c" * 16).start(**{"playhead.run.agent": "helper"})
    made.chat()
    store_run(playhead.data_dir, made.exit(0))
    return playhead


def test_runs_are_summed_up_by_agent(two: CommandLine):
    head, helper, failed, total = two("stats").lines
    assert head.split() == "AGENT RUNS FAILED STEPS TOKENS COST P50 P90 P99".split()
    assert helper.split()[:5] == ["helper", "1", "0", "1", "812→64"]
    assert failed.split()[:6] == ["refund", "1", "1", "11", "4068→322", "$0.01+"]
    assert failed.split()[6:] == ["6.5s"] * 3
    assert total.split()[:5] == ["all", "2", "1", "12", "4880→386"]


def test_a_query_says_which_runs_and_a_way_how_they_are_grouped(two: CommandLine):
    assert [line.split()[0] for line in two("stats", "agent:refund", "--by", "model").lines] == [
        "MODEL",
        "gpt-4o",
        "all",
    ]
    assert len(two("stats", "--by", "day", "since:1h").lines) == 3
    assert [line.split()[:2] for line in two("stats", "--by", "none", "order").lines[1:]] == [
        ["all", "1"]
    ]
    wrong = two("stats", "agnt:x")
    assert wrong.status == 2 and "is not a field of a run" in wrong.err


def test_the_object_is_that_of_the_query_api(two: CommandLine):
    found = json.loads(two("stats", "--json", "--by", "status").out)
    assert found.pop("schema_version") == 1
    assert msgspec.to_builtins(TypeAdapter(RunStats).validate_python(found, extra="forbid")) == found
    assert {one["key"]: one["runs"] for one in found["groups"]} == {"failure": 1, "success": 1}


def test_where_nothing_is_recorded_that_is_said(playhead: CommandLine):
    done = playhead("stats")
    assert (done.status, done.out, done.err) == (0, "", f"playhead: no runs in {playhead.data_dir}\n")
