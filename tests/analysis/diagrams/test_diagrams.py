"""Diagrams and process logs: every line is one that Mermaid and DOT know, whatever the labels are."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from support.analysis.made_paths import SECOND, path

from playhead_analysis import RunPath
from playhead_analysis.diagrams import dot, mermaid, process_logs
from playhead_analysis.flows.flow import flow_of

HOSTILE = [
    "end",
    'a"]; click n1 call alert(1)',
    "x-->>y: z; loop",
    "%%{init: {}}%%",
    "<script>alert(1)</script>",
    "a\\",
    "#quot;",
    "line\nbreak",
    "}} |y|",
    "\x00\x1b]0;t\x07",
    "\ud800",
    "note over p0",
    "[*]",
    "ä漢",
    "x" * 500,
]
TEXT = r"(?:[^\W_]|#\d+;|[ _.,/()\[\]\-+*?!'=→×%$…])*"
SEQUENCE = re.compile(
    rf"sequenceDiagram|    participant p(?:\d+|x) as {TEXT}|    loop \d+ times|    end"
    rf"|(?:    ){{1,2}}p0->>p(?:\d+|x): {TEXT}|(?:    ){{1,2}}p(?:\d+|x)--(?:>>|x)p0: {TEXT}"
    rf"|    Note over p0: {TEXT}"
)
STATES = re.compile(
    rf"stateDiagram-v2|    s\d+ : {TEXT}|    (?:\[\*\]|s\d+) --> (?:\[\*\]|s\d+)(?: : {TEXT})?"
)
FLOWCHART = re.compile(
    rf'flowchart TD|    n\d+(?:\(\["{TEXT}"\]\)|\["{TEXT}"\]|\{{\{{"{TEXT}"\}}\}})'
    rf'|    n\d+ (?:-->|-\.->)\|"{TEXT}"\| n\d+'
)
QUOTED = r'"(?:[^"\\\n]|\\["\\])*"'
DOT = re.compile(
    rf"digraph flow \{{|\}}|  node \[.*\];|  {QUOTED} \[label={QUOTED}, shape=\w+(?:, color=red)?\];"
    rf"|  {QUOTED} -> {QUOTED} \[label={QUOTED}, penwidth=[\d.]+(?:, style=dotted)?\];"
)


def hostile() -> RunPath:
    return replace(path([*HOSTILE, "search!"], HOSTILE[0]), agent=HOSTILE[1])


def in_phases(run: RunPath) -> RunPath:
    steps = tuple(replace(step, phase=HOSTILE[step.number % 5]) for step in run.steps)
    return replace(run, steps=steps)


@pytest.mark.parametrize(
    "run", [hostile(), in_phases(hostile()), path("")], ids=["labels", "phases", "none"]
)
def test_no_label_is_syntax(run: RunPath):
    flow = flow_of([run, run, run])
    for grammar, text in (
        (SEQUENCE, mermaid.sequence_diagram(run)),
        (STATES, mermaid.state_diagram(run)),
        (FLOWCHART, mermaid.flowchart(flow, with_rare=True)),
        (DOT, dot.graph(flow, with_rare=True)),
    ):
        assert [line for line in text.rstrip("\n").split("\n") if not grammar.fullmatch(line)] == []


def test_a_sequence_folds_repeats_and_shows_failures():
    assert mermaid.sequence_diagram(path("chat " + "search chat " * 5 + "refund!")).splitlines() == [
        "sequenceDiagram",
        "    participant p0 as agent",
        "    participant p1 as chat",
        "    participant p2 as search",
        "    participant p3 as refund",
        "    loop 5 times",
        "        p0->>p1: 1 chat",
        "        p1-->>p0: 1.0s",
        "        p0->>p2: 2 search",
        "        p2-->>p0: 1.0s",
        "    end",
        "    p0->>p1: 11 chat",
        "    p1-->>p0: 1.0s",
        "    p0->>p3: 12 refund",
        "    p3--xp0: timeout 1.0s",
    ]


def test_a_large_run_gives_a_diagram_that_can_be_drawn():
    run = path([f"tool {number}" for number in range(5000)])
    text = mermaid.sequence_diagram(run)
    assert max(len(text), len(mermaid.state_diagram(run))) < 50_000
    assert "4800 more steps" in text
    assert mermaid.flowchart(flow_of([run, run, run])).count("-->") <= mermaid.MOST_EDGES


def test_process_logs_hold_every_step_of_every_run():
    runs = [hostile(), path("chat search refund", "agent-2")]
    tree = ElementTree.fromstring("\n".join(process_logs.xes(runs)).encode())
    space = "{http://www.xes-standard.org/}"
    traces = tree.findall(f"{space}trace")
    assert [len(trace.findall(f"{space}event")) for trace in traces] == [16, 3]
    event = traces[1].findall(f"{space}event")[0]
    values = {value.get("key"): value.get("value") for value in event}
    assert values["concept:name"] == "chat"
    assert values["time:timestamp"] == "2023-11-14T22:13:21.000000+00:00"

    log = json.loads(json.dumps(process_logs.ocel(runs)))
    assert len(log["events"]) == 19
    known = {one["id"] for one in log["objects"]}
    links = {link["objectId"] for event in log["events"] for link in event["relationships"]}
    assert links <= known
    assert {one["type"] for one in log["events"]} == {one["name"] for one in log["eventTypes"]}
    late = replace(runs[1], steps=(replace(runs[1].steps[0], started_ns=1 << 63, duration_ns=SECOND),))
    assert "9999-12-31" in "\n".join(
        process_logs.xes([replace(late, steps=(replace(late.steps[0], started_ns=1 << 70),))])
    )
