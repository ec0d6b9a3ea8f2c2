"""Who asked whom, from spans and reports: answers, hand-offs, time of their own, and hostile names."""

from __future__ import annotations

import re

from analysis.diagrams.test_diagrams import HOSTILE, QUOTED, TEXT
from support.tapes.batches import span_of
from support.tapes.handmade import HandMade

from playhead_analysis.agents.communications import (
    ANSWERING,
    communications_of,
    communications_of_runs,
)
from playhead_analysis.agents.graph import AgentGraph, graph_of
from playhead_analysis.diagrams import dot, mermaid
from playhead_replay import Run
from playhead_semconv import events as e

SECOND = 10**9
CHART = re.compile(rf'flowchart LR|    n\d+\["{TEXT}"\]|    n\d+ (?:-->|==>)\|"{TEXT}"\| n\d+')
SEQUENCE = re.compile(
    rf"sequenceDiagram|    participant p\d+ as {TEXT}|    p\d+(?:->>|-->>|--x)p\d+: {TEXT}"
    rf"|    Note over p0: {TEXT}"
)
DOT = re.compile(
    rf"digraph agents \{{|\}}|  node \[.*\];|  {QUOTED};"
    rf"|  {QUOTED} -> {QUOTED} \[label={QUOTED}, penwidth=\d(?:, color=red)?\];"
)


class Agents(HandMade):
    """A run in which agents ask others."""

    def agent(self, name: str, parent: int | None = None, **more: object) -> int:
        named = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": name, **more}
        given = {} if parent is None else {"parent": parent}
        return self.begin(f"invoke_agent {name}", **given, **named)

    def message(self, span: int, to: str, kind: str, channel: str = "") -> None:
        fields = {"to": to, "kind": kind, "channel": channel}
        at = {f"{e.PLAYHEAD_MESSAGE}.{name}": one for name, one in fields.items()}
        self.fact(e.PLAYHEAD_MESSAGE, span=span, attributes=at)

    def run(self) -> Run:
        return Run.of_tape(self.tape(), [one.otlp for one in self.spans], "refund-1")


def graph(run: Run) -> AgentGraph:
    return graph_of({run.name: communications_of(run)})


def test_the_bottleneck_is_the_agent_that_worked_itself():
    made = Agents()
    made.start()
    boss = made.agent("boss")
    again = made.agent("boss", boss)  # a framework and the program have a span for one call
    tool = made.begin("execute_tool ask", parent=again, gen_ai__operation__name="execute_tool")
    worker = made.wait(1).agent("worker", tool)
    slow = made.wait(1).agent("slow", worker)
    made.wait(9).finish(slow, error="gone")
    made.wait(1).finish(worker)
    for number in (tool, again, boss):
        made.finish(number)
    made.agent("pending")
    found = graph(made.run())
    times = {
        one.target: (one.channel, one.waited_ns // SECOND, one.own_ns // SECOND) for one in found.edges
    }
    assert times == {
        "boss": ("call", 12, 1),
        "worker": ("tool", 11, 2),
        "slow": ("call", 9, 9),
        "pending": ("call", 0, 0),
    }
    assert found.bottleneck is not None and found.edges[found.bottleneck].target == "slow"
    failed = {one.target: (one.failed, one.unanswered, one.failures) for one in found.edges}
    assert failed["slow"] == (1, 0, ["gone"]) and failed["pending"] == (0, 1, [])


def test_messages_are_paired_with_their_answers_in_order():
    made = Agents()
    made.start()
    first, second = made.agent("a"), made.agent("b")
    for sender, to, kind in (
        (first, "b", "question"),
        (first, "b", "task_delegation"),
        (second, "a", "result"),
        (second, "a", "error_notification"),
        (second, "a", "result"),
        (first, "b", "question"),
        (first, "c", "own word"),
    ):
        made.wait(1).message(sender, to, kind)
    sent = [one for one in communications_of(made.run()) if one.channel == "message"]
    assert [
        (one.source, one.target, one.kind, one.own_ns // SECOND, one.failed, one.expects_answer)
        for one in sent
    ] == [
        ("a", "b", "question", 2, False, True),
        ("a", "b", "task_delegation", 2, True, True),
        ("b", "a", "result", 0, False, False),
        ("a", "b", "question", 0, False, True),
        ("a", "c", "own word", 0, False, False),
    ]
    assert [one.answered_ns is None for one in sent] == [False, False, True, True, True]
    assert ANSWERING == {"result", "error_notification"}


def test_messages_over_different_channels_are_different_edges():
    made = Agents()
    made.start()
    first, second = made.agent("a"), made.agent("b")
    for channel in ("slack", "", "http", "slack"):
        made.wait(1).message(first, "b", "question", channel)
    made.wait(1).message(second, "a", "result", "email")
    found = graph(made.run())
    edges = {(one.source, one.channel): (one.requests, one.answered) for one in found.edges}
    del edges["refund", "call"]
    assert edges == {("a", "http"): (1, 0), ("a", "message"): (1, 0), ("a", "slack"): (2, 1)}


def test_a_run_that_another_one_triggered_is_an_edge_between_them():
    first = Agents(b"1" * 16, b"1" * 16).start(**{"playhead.run.agent": "planner"})
    second = Agents(b"2" * 16, b"2" * 16).start(**{"playhead.run.agent": "buyer"})
    name = e.PLAYHEAD_TRIGGER
    at = {f"{name}.type": "another_agent", f"{name}.run": (b"1" * 16).hex()}
    second.fact(name, attributes=at)
    second.finish(second.wait(3).agent("shop"))
    runs = [made.wait(2).exit(0).run() for made in (first, second)]
    runs[0].name = "planner-1"
    found = communications_of_runs(runs)
    [trigger, shop] = found["refund-1"]
    assert (trigger.source, trigger.target, trigger.channel) == ("planner", "buyer", "trigger")
    assert (trigger.answered_ns or 0) - trigger.started_ns >= 5 * SECOND
    assert (shop.source, shop.target) == ("buyer", "shop") and found["planner-1"] == []
    assert graph_of(found).agents == ["buyer", "planner", "shop"]
    assert [one.channel for one in communications_of_runs(runs[1:])["refund-1"]] == ["call"]


def test_spans_of_other_senders_cross_services_queues_and_servers_that_are_not_recorded():
    trace = bytes(range(16))
    agent = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "planner"}
    helper = {**agent, "gen_ai__agent__name": "helper"}
    to_b = {"http__request__method": "POST", "url__full": "http://b.test/x"}
    handoff = {
        "playhead__framework__handoff__from": "planner",
        "playhead__framework__handoff__to": "gone",
    }
    mcp = {"mcp__method__name": "tools/call"}
    to_mcp = {"http__request__method": "POST", "url__full": "http://mcp.test:81/mcp"}
    spans = [
        span_of(trace, 1, name="POST /", kind=2, service="a"),
        span_of(trace, 2, parent=1, name="invoke_agent planner", kind=1, service="a", **agent),
        span_of(trace, 3, parent=2, name="POST", service="a", error=True, **to_b),
        span_of(trace, 4, parent=3, name="POST /x", kind=2, service="b"),
        span_of(trace, 5, parent=4, name="job", kind=5, service="c"),
        span_of(trace, 6, parent=2, name="handoff", kind=1, service="a", **handoff),
        span_of(trace, 7, parent=2, name="tools/call look", service="a", **mcp),
        span_of(trace, 8, parent=7, name="POST", service="a", **to_mcp),
        span_of(trace, 9, parent=4, name="rpc", kind=3, service="b", rpc__system="grpc"),
        span_of(trace, 10, parent=9, name="rpc", kind=2, service="d", rpc__system="grpc"),
        span_of(trace, 11, parent=2, name="in a fork", kind=1, service="a", instance=b"f" * 16),
        span_of(trace, 12, parent=11, kind=1, service="a", instance=b"f" * 16, **helper),
    ]
    found = graph(Run.of_tapes((), [one.otlp for one in spans], "other-1"))
    assert {(one.source, one.target, one.channel, one.failed) for one in found.edges} == {
        ("a", "planner", "call", 0),
        ("planner", "b", "http", 1),
        ("b", "c", "queue", 0),
        ("b", "d", "rpc", 0),
        ("planner", "gone", "handoff", 0),
        ("planner", "mcp.test", "mcp", 0),
        ("planner", "helper", "process", 0),
    }


def test_no_name_is_syntax_in_a_diagram():
    made = Agents()
    made.start()
    outer = made.agent("outer")
    for number, name in enumerate(HOSTILE):
        inner = made.agent(name.encode("utf-8", "replace").decode(), outer)
        made.wait(1).finish(inner, error=HOSTILE[number - 1].encode("utf-8", "replace").decode())
        made.message(inner, HOSTILE[number - 2], HOSTILE[number - 3])
    found = communications_of(made.run())
    assert len(found) >= 2 * len(HOSTILE)
    for grammar, text in (
        (CHART, mermaid.agent_chart(graph_of({"x": found}))),
        (SEQUENCE, mermaid.agent_sequence(found)),
        (DOT, dot.agent_graph(graph_of({"x": found}))),
    ):
        assert [line for line in text.rstrip("\n").split("\n") if not grammar.fullmatch(line)] == []
    many = mermaid.agent_sequence(found * 50)
    assert len(many.splitlines()) < 3 * mermaid.MOST_MESSAGES and "more requests" in many
