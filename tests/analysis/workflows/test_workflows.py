"""Workflows: hostile files, alignments against brute force, what is missing, discovery."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from random import Random

import pytest
from support.analysis.made_paths import MODELS, SECOND, path, runs_of
from support.tapes.handmade import HandMade

from playhead_analysis.workflows import assert_workflow
from playhead_analysis.workflows.alignment import Aligner
from playhead_analysis.workflows.conformance import Conformer, ExceededBound, conformance_of
from playhead_analysis.workflows.definition import SHIPPED, read_workflow, workflow_of
from playhead_analysis.workflows.discovery import discover, precedences
from playhead_core.errors import ConfigurationError
from playhead_replay import Run
from playhead_semconv import attributes as a

REFUND = b"""
name = "refund"
ignore = ["chat*"]

[[state]]
name = "deciding"
minimum_s = 1

[[action]]
name = "search"
match = ["search_*", "lookup"]
minimum = 1
maximum = 3

[[action]]
name = "refund"
minimum = 1
maximum = 1

[[action]]
name = "delete"

[[rule]]
kind = "precedence"
first = "search"
then = "refund"

[[rule]]
kind = "absence"
first = "delete"

[bounds]
duration_s = 60
cost_usd = 0.5
repeats = 2

[success]
status = ["success"]
last = ["refund"]
"""


def in_phase(run, phase: str = "deciding"):
    return replace(run, states=(phase,), steps=tuple(replace(one, phase=phase) for one in run.steps))


def test_a_run_conforms_or_says_why_not():
    conformer = Conformer(workflow_of(REFUND))
    good = conformer.conform(in_phase(path("chat search_docs chat lookup chat refund")))
    assert (good.conforms, good.completeness, good.cost) == ("yes", 1.0, 0)

    steps = "delete refund search_a search_b search_c lookup mail"
    bad = conformer.conform(path(steps, duration_ns=61 * SECOND, status="failure"))
    assert (bad.conforms, bad.completeness, bad.is_success) == ("no", 0.6667, False)
    assert bad.missing == ["state deciding"]
    assert bad.unexpected == ["6 lookup", "7 mail"]
    assert bad.broken_rules == ["refund only after search", "never delete"]
    assert bad.exceeded == [ExceededBound("duration_s", 60, 61)]
    assert bad.anomalies == ["timeout"]

    lacking = conformer.conform(in_phase(path("search_docs search_docs search_docs", cost_usd=None)))
    assert lacking.missing == ["refund"]
    assert lacking.unknown == ["cost_usd is not known"]
    assert lacking.anomalies == ["infinite_loop", "missing_action"]
    running = conformer.conform(in_phase(path("search_docs", status="running", duration_ns=None)))
    assert running.conforms == "unknown"

    report = conformance_of(workflow_of(REFUND), [in_phase(path("lookup refund")), path(steps)])
    assert (report.conforms, report.runs, report.conforming) == ("no", 2, 1)
    assert report.unexpected == {"lookup": 1, "mail": 1}


HOSTILE = {
    "not TOML": (b"name = \n", "line 1"),
    "no text": (b"\xff", "not a TOML file"),
    "deep": (b"a = " + b"[" * 5000, "not a TOML file"),
    "large": (b"#" * (300 << 10), "larger than 256 KiB"),
    "no name": (b"description = 'x'", "name is missing"),
    "unknown word": (
        b'name = "x"\n[[action]]\nname = "a"\nminimun = 1',
        "line 4: unknown word 'minimun'",
    ),
    "second table": (
        b'name = "x"\n[[action]]\nname = "a"\n\n[[action]]\nname = "b"\nminimum = -1',
        "line 7: minimum is not a whole number from 0",
    ),
    "bounds": (b'name = "x"\n[bounds]\nduration_s = nan', "line 3: duration_s"),
    "above": (b'name="x"\n[[action]]\nname="a"\nminimum=2\nmaximum=1', "line 5: maximum of 'a'"),
    "unknown action": (
        b'name = "x"\n[[action]]\nname = "search"\n[[transition]]\nfrom = "serch"\nto = "search"',
        "line 5: from names no action: 'serch'",
    ),
    "wildcards": (
        b'name="x"\n[[action]]\nname="a"\nmatch=["*a*a*a*a*a*b"]',
        "line 4: a pattern has more",
    ),
    "control": (b'name = "a\\u001b[2J"', "line 1: name is not a text"),
    "many": (b'name="x"\n' + b'[[action]]\nname="a"\n' * 201, "more than 200"),
    "table": (b'name = "x"\naction = 1', "line 2: action is not a list"),
    "twice": (b'name="x"\n[[action]]\nname="a"\n[[action]]\nname="a"', "two actions"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_with_its_line(case: str):
    data, expected = HOSTILE[case]
    with pytest.raises(ConfigurationError) as refused:
        workflow_of(data, "flow.toml")
    assert expected in str(refused.value)
    assert len(str(refused.value)) < 600


def distance(left: Sequence[str], right: Sequence[str]) -> int:
    """Insertions and deletions that turn one into the other."""
    row = list(range(len(right) + 1))
    for number, one in enumerate(left, 1):
        corner, row[0] = row[0], number
        for at, other in enumerate(right, 1):
            corner, row[at] = row[at], corner if one == other else min(row[at], row[at - 1]) + 1
    return row[-1]


def test_alignments_of_500_mutants_equal_brute_force():
    rng = Random(7)
    compared = 0
    while compared < 500:
        actions = list("abcd"[: rng.randint(2, 4)])
        edges = [pair for pair in product(actions, actions) if rng.random() < 0.45]
        start, end = rng.sample(actions, 1), rng.sample(actions, 1)
        walks: list[list[str]] = []
        ahead = [start]
        for _ in range(8):
            walks += [walk for walk in ahead if walk[-1] in end]
            ahead = [[*walk, after] for walk in ahead for before, after in edges if before == walk[-1]]
        if not walks:
            continue
        run = [rng.choice([*actions, "strange"]) for _ in range(rng.randint(0, 5))]
        matched = [[one] if one in actions else [] for one in run]
        cost, moves = Aligner(actions, edges, start, end).align(matched)
        assert cost == min(distance(run, walk) for walk in walks), (edges, start, end, run)
        walk = [move.action for move in moves if move.kind != "unexpected"]
        assert (walk[:1], walk[-1:]) == (start, end) and {*pairwise(walk)} <= {*edges}
        assert [move.position for move in moves if move.kind != "missing"] == list(range(len(run)))
        compared += 1


@pytest.mark.parametrize("model", ["choice", "loop of three", "parallel", "agent"])
def test_a_discovered_workflow_accepts_new_good_runs_and_refuses_strange_ones(model: str):
    good = runs_of(MODELS[model], 200, 0.05, Random(3))
    bad = [path([*good[0].labels, "delete_all"])]
    workflow = workflow_of(discover(good, bad, "found", ["agent"]).encode())
    conformer = Conformer(workflow)
    new = runs_of(MODELS[model], 100, 0, Random(4))
    accepted = sum(conformer.conform(one).conforms == "yes" for one in new)
    assert accepted >= 95
    assert "never delete_all" in conformer.conform(bad[0]).broken_rules
    assert conformer.conform(path("delete_all")).completeness < 1


def test_precedences_leave_out_what_follows():
    assert precedences([path("a b c"), path("a b")], ["a", "b", "c"]) == [("a", "b")]
    assert precedences([path("a b c"), path("a b c")], ["a", "b", "c"]) == [("a", "b"), ("b", "c")]


def test_shipped_workflows_tell_good_runs_from_bad_ones():
    good = {
        "code-generation": "read_file chat write_file chat run_tests",
        "quality-check": "chat list_files chat lint chat report",
        "refactoring": "grep chat pytest chat edit_file chat pytest",
        "incident-triage": "search_logs chat get_metrics chat classify chat notify_team",
    }
    assert sorted(good) == sorted(one.stem for one in SHIPPED.glob("*.toml"))
    for name, steps in good.items():
        conformer = Conformer(read_workflow(name))
        assert conformer.conform(path(steps)).conforms == "yes", name
        assert conformer.conform(path(steps.split()[2:])).conforms == "no", name


def test_a_test_asserts_a_workflow(tmp_path: Path):
    made = HandMade().start()
    made.chat()
    made.tool("search_docs", "{}")
    made.finish(
        made.begin(
            "execute_tool", **{a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "refund"}
        )
    )
    run = Run.of_tapes([made.exit().tape()], [span.otlp for span in made.spans], "refund-1")
    file = tmp_path / "refund.toml"
    file.write_bytes(REFUND.replace(b'[[state]]\nname = "deciding"\nminimum_s = 1\n', b""))
    assert_workflow(run, file)
    file.write_bytes(file.read_bytes().replace(b"minimum = 1", b"minimum = 2", 1))
    with pytest.raises(AssertionError, match="missing: search"):
        assert_workflow(run, file)


@pytest.mark.acceptance
def test_a_thousand_runs_of_200_steps_are_quick():
    rng = Random(5)
    labels = [f"tool{number}" for number in range(20)]
    edges = [pair for pair in product(labels, labels) if rng.random() < 0.2]
    lines = ['name = "large"', *(f'[[action]]\nname = "{label}"' for label in labels)]
    lines += [f'[[transition]]\nfrom = "{one}"\nto = "{other}"' for one, other in edges[:100]]
    workflow = workflow_of("\n".join(lines).encode())
    runs = [path([rng.choice(labels) for _ in range(200)], f"agent-{one}") for one in range(1000)]
    began = time.process_time()
    report = conformance_of(workflow, runs)
    print(f"1,000 runs of 200 steps: {time.process_time() - began:.2f} s of the processor")
    assert report.runs == 1000
