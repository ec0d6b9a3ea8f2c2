"""Flows: counts, times, failures, ways and points; the edges of known processes, in spite of noise."""

from __future__ import annotations

import time
from itertools import product
from random import Random

import pytest
from support.analysis.made_paths import MODELS, SECOND, edges_of_model, path, runs_of

from playhead_analysis.flows.flow import BranchPoint, BranchTarget, Way, flow_of
from playhead_analysis.flows.graph import FlowEdge, FlowNode

REFUND, SEARCHED, FAILED = (
    "chat search chat refund",
    "chat search chat search chat refund",
    "chat search!",
)
RUNS = [
    *(path(REFUND, f"agent-{number}") for number in range(6)),
    *(path(SEARCHED, f"agent-{number}", duration_ns=90 * SECOND) for number in range(6, 9)),
    path(FAILED, "agent-9", status="failure"),
]


def test_a_flow_has_counts_times_failures_ways_and_points():
    flow = flow_of(RUNS)
    assert (flow.runs, flow.failed, flow.steps, flow.distinct_ways) == (10, 1, 44, 3)
    nodes = {node.label: node for node in flow.nodes}
    assert nodes["search"] == FlowNode("search", "tool", 13, 10, 1, {"timeout": 1}, SECOND, SECOND)
    edges = {(edge.source, edge.target): edge for edge in flow.edges}
    assert edges["search", "chat"] == FlowEdge(
        "search", "chat", 12, 9, 0.9231, 0.9375, SECOND // 2, SECOND // 2, False
    )
    assert edges["search", "(end)"].is_rare
    assert edges["chat", "refund"].dependency == 0.9
    assert flow.ways[1] == Way(
        SEARCHED.split(), 3, 0.3, 0, 90 * SECOND, ["agent-6", "agent-7", "agent-8"]
    )
    decision, variation = flow.points[1], flow.points[0]
    assert variation == BranchPoint(
        "variation",
        "",
        "search",
        13,
        [BranchTarget("chat", 12, 0.9231, 110), BranchTarget("(end)", 1, 0.0769, 110)],
        110,
        False,
    )
    assert (decision.kind, decision.after, decision.at) == ("decision", "search", "chat")
    assert [(one.target, one.count) for one in decision.branches] == [("refund", 9), ("search", 3)]
    assert flow_of(RUNS[::-1]) == flow


@pytest.mark.parametrize("noise", [0, 0.05, 0.1])
def test_the_edges_of_ten_known_processes_are_found(noise: float):
    scores = {name: f1(name, noise, seed=1) for name in MODELS}
    assert {name: score for name, score in scores.items() if score < 0.95} == {}


def f1(name: str, noise: float, seed: int) -> float:
    flow = flow_of(runs_of(MODELS[name], 200, noise, Random(seed)))
    found = {(edge.source, edge.target) for edge in flow.edges if not edge.is_rare}
    real = edges_of_model(MODELS[name])
    return 2 * len(found & real) / (len(found) + len(real))


@pytest.mark.acceptance
def test_edges_are_found_in_600_sets_of_runs_and_a_thousand_runs_are_quick():
    scores = {
        (name, noise, seed): f1(name, noise, seed)
        for name, noise, seed in product(MODELS, (0, 0.025, 0.05, 0.1), range(15))
    }
    mean = sum(scores.values()) / len(scores)
    print(f"edge F1 of {len(scores)} sets: least {min(scores.values()):.3f}, mean {mean:.4f}")
    assert {one: score for one, score in scores.items() if score < 0.95} == {}
    rng = Random(4)
    labels = ["chat", "search", "read", "write", "refund"]
    runs = [path([rng.choice(labels) for _ in range(50)], f"agent-{one}") for one in range(1000)]
    began = time.process_time()
    flow = flow_of(runs)
    print(f"1,000 runs of 50 steps: {time.process_time() - began:.2f} s of the processor")
    assert flow.steps == 50_000
