"""The example in which everything fails: each type of failure is found with its code and step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.starting.home import Home

from playhead_cli.demo.provider import Provider

AGENT = Path(__file__).parents[2] / "examples" / "failing_agent.py"
DERIVED = [
    ("tool", "api_error", 1),
    ("model", "rate_limit", 2),
    ("retrieval", "no_results", 4),
    ("orchestration", "max_retries_exceeded", None),  # of the run as a whole
]
REPORTED = ("orchestration", "step_repetition", 5)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with one run of the example."""
    with Provider(pace_s=0) as provider:
        home = Home(tmp_path_factory.mktemp("failing"), provider.environment)
        done = home.playhead("record", AGENT)
        assert done.returncode == 1
        assert "RuntimeError: gave up: the model repeats its search" in done.stderr
        yield home


def test_each_type_has_its_code_and_step(home: Home):
    shown = json.loads(home.playhead("show", "--json").stdout)
    assert [(one["type"], one["code"], one["step"]) for one in shown["failures"]] == DERIVED
    reports = [(one["kind"], one["step"], one["fields"]) for one in shown["reports"]]
    assert [
        (fields["type"], fields["code"], step) for kind, step, fields in reports if kind == "failure"
    ] == [REPORTED]
    chosen = [(step, fields["chosen"]) for kind, step, fields in reports if kind == "decision"]
    assert chosen == [(1, "mail"), (2, "ask again")]
    signals = [(step, fields["value"]) for kind, step, fields in reports if kind == "signal"]
    assert signals == [(4, True)]


def test_a_person_sees_them_at_their_steps(home: Home):
    lines = home.playhead("show").stdout.splitlines()
    for type, code, step in DERIVED[:3]:
        assert any(f" {type} {code}  " in line and f" at {step}  " in line for line in lines), code
    assert any("failure orchestration step_repetition at search order 83" in line for line in lines)
    assert any("decision where to look for the order → mail of 2" in line for line in lines)
    assert any("signal empty_retrieval search true" in line for line in lines)


@pytest.mark.parametrize("failure", [f"{type}/{code}" for type, code, _ in (*DERIVED, REPORTED)])
def test_each_is_found(home: Home, failure: str):
    (found,) = home.runs(f"failure:{failure}")
    assert found["name"] == "failing_agent-1"
    assert home.runs(f"failure:{failure} status:success") == []


def test_the_replay_fails_in_the_same_way(home: Home):
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical")
