"""Runs are found by what their programs report: trees of runs, and the status of sessions."""

from __future__ import annotations

import time

import pytest
from support.starting.cli import CommandLine, store_run
from support.tapes.handmade import HandMade

from playhead_semconv import attributes as a
from playhead_semconv import events as e


def store(playhead: CommandLine, number: int, parent: str = "", phase: str = "", ended: bool = True):
    made = HandMade(bytes([number]) * 16, bytes([number]) * 16)
    made.at_ns = time.time_ns()
    made.start(**{a.PLAYHEAD_RUN_AGENT: "planner", a.PLAYHEAD_PROCESS_HEARTBEAT_MS: 600_000})
    if parent:
        at = {a.PLAYHEAD_TRIGGER_TYPE: "another_agent", a.PLAYHEAD_TRIGGER_RUN: parent}
        made.fact(e.PLAYHEAD_TRIGGER, attributes=at)
    if phase:
        made.fact(e.PLAYHEAD_PHASE, attributes={a.PLAYHEAD_PHASE_NAME: phase})
    made.tool("search", "{}")
    store_run(playhead.data_dir, made.exit() if ended else made)


@pytest.fixture
def runs(playhead: CommandLine) -> CommandLine:
    """A tree of four runs, of which one names its parent, and two others."""
    store(playhead, 1)
    store(playhead, 2, parent="01" * 16)
    store(playhead, 3, parent="planner-2")
    store(playhead, 4, parent="03" * 16, phase="planning", ended=False)
    store(playhead, 5, parent="06" * 16, ended=False)
    store(playhead, 6, parent="05" * 16)
    return playhead


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("root:planner-1", "1234"),
        ("root:planner-3", "34"),
        ("root:planner-1 status:completed", "123"),
        ("root:planner-5", "56"),  # they name each other
        ("status:planning", "4"),
        ("status:executing", "5"),
        ("status:waiting", ""),
        ("status:running phase:planning", "4"),
        ("status:failed", ""),
    ],
)
def test_runs_are_found(runs: CommandLine, query: str, numbers: str):
    found = sorted(line.split()[0] for line in runs("ls", *query.split()).lines if "planner-" in line)
    assert found == [f"planner-{number}" for number in numbers]


def test_an_unknown_root_has_no_runs(runs: CommandLine):
    assert "no such runs" in runs("ls", "root:planner-9").err
