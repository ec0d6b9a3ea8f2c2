"""Mermaid text: flowcharts of flows and agents, sequence and state diagrams of runs.

Labels come from spans, so they may hold anything. Every character that is no letter, digit or harmless
sign is written as an entity (``#35;``), which Mermaid shows as the character and never parses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from playhead_analysis.agents.communications import Communication
from playhead_analysis.agents.graph import AgentEdge, AgentGraph
from playhead_analysis.durations import brief
from playhead_analysis.flows.flow import Flow
from playhead_analysis.flows.graph import END, START
from playhead_analysis.folding import find_folds
from playhead_analysis.paths import PathStep, RunPath

LONGEST_LABEL: Final = 60
MOST_MESSAGES: Final = 200
"""Steps of a sequence diagram; Mermaid refuses long texts, and no reader follows them."""
MOST_PARTICIPANTS: Final = 20
MOST_STATES: Final = 200
MOST_EDGES: Final = 400
"""Edges of a graph: Mermaid draws 500 at most."""
_HARMLESS: Final = frozenset(" _.,/()[]-+*?!'=→×%$")


def escaped(text: str) -> str:
    """Return a label in which nothing is syntax.

    >>> escaped('say "hi"; end')
    'say #34;hi#34;#59; end'
    """
    cut = text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
    return "".join(
        one if one.isalnum() or one in _HARMLESS or one == "…" else f"#{ord(one)};" for one in cut
    )


def flowchart(flow: Flow, with_rare: bool = False) -> str:
    """Return the graph of a flow. Rare edges are left out, or dotted ``with_rare``."""
    edges = [edge for edge in flow.edges if with_rare or not edge.is_rare][:MOST_EDGES]
    used = {START, END} | {one for edge in edges for one in (edge.source, edge.target)}
    ids = {node.label: f"n{at}" for at, node in enumerate(flow.nodes) if node.label in used}
    lines = ["flowchart TD"]
    for node in flow.nodes:
        if node.label not in ids:
            continue
        said = escaped(node.label.strip("()") if node.kind in ("start", "end") else node.label)
        more = "" if node.kind in ("start", "end") else f" ×{node.count}"
        if node.failures:
            more += f", {node.failures} failed"
        opening, closing = ("([", "])") if node.kind in ("start", "end") else ("[", "]")
        if node.kind == "model":
            opening, closing = "{{", "}}"
        lines.append(f'    {ids[node.label]}{opening}"{said}{more}"{closing}')
    for edge in edges:
        time = f", {brief(edge.median_ns)}" if edge.median_ns else ""
        arrow = "-.->" if edge.is_rare else "-->"
        lines.append(f'    {ids[edge.source]} {arrow}|"{edge.count}{time}"| {ids[edge.target]}')
    return "\n".join(lines) + "\n"


def agent_chart(graph: AgentGraph) -> str:
    """Return the graph of agents that talk. The arrow of the bottleneck is thick."""
    edges = graph.edges[:MOST_EDGES]
    used = dict.fromkeys(name for edge in edges for name in (edge.source, edge.target))
    ids = {name: f"n{at}" for at, name in enumerate(used)}
    lines = ["flowchart LR", *(f'    {id}["{escaped(name)}"]' for name, id in ids.items())]
    for at, edge in enumerate(edges):
        arrow = "==>" if at == graph.bottleneck else "-->"
        label = escaped(edge_label(edge))
        lines.append(f'    {ids[edge.source]} {arrow}|"{label}"| {ids[edge.target]}')
    return "\n".join(lines) + "\n"


def edge_label(edge: AgentEdge) -> str:
    """Return what an arrow between two agents says: ``http ×3, 1.2s, 1 failed``."""
    parts = [f"{edge.channel} ×{edge.requests}"]
    parts += [brief(edge.waited_ns)] if edge.waited_ns else []
    parts += [f"{edge.failed} failed"] if edge.failed else []
    return ", ".join(parts)


def agent_sequence(communications: Sequence[Communication]) -> str:
    """Return who asked whom and who answered, in order of time.

    A run with more communications than `MOST_MESSAGES` is cut, and says so.
    """
    shown = communications[:MOST_MESSAGES]
    ids: dict[str, str] = {}
    for one in shown:
        for name in (one.source, one.target):
            ids.setdefault(name, f"p{len(ids)}")
    events: list[tuple[int, int, str]] = []
    for number, one in enumerate(shown):
        source, target = ids[one.source], ids[one.target]
        said = escaped(" ".join(filter(None, (one.channel, one.kind))))
        events.append((one.started_ns, number, f"    {source}->>{target}: {said}"))
        if one.answered_ns is not None:
            took = brief(max(one.answered_ns - one.started_ns, 0))
            arrow, said = ("--x", escaped(one.failure) or "failed") if one.failed else ("-->>", took)
            # Of two answers at the same time, that of the later request comes first.
            events.append((one.answered_ns, -number, f"    {target}{arrow}{source}: {said}"))
    lines = ["sequenceDiagram", *(f"    participant {id} as {escaped(one)}" for one, id in ids.items())]
    lines += [line for _, _, line in sorted(events, key=lambda event: event[:2])]
    if len(communications) > len(shown):
        lines.append(f"    Note over p0: {len(communications) - len(shown)} more requests")
    return "\n".join(lines) + "\n"


def sequence_diagram(path: RunPath) -> str:
    """Return who called whom in a run: the agent, its models, tools and services, in order.

    Repeats are folded into a loop. A run with more steps than `MOST_MESSAGES` is cut, and says so.
    """
    steps = path.steps[:MOST_MESSAGES]
    names = [name for name, _ in Counter(map(_participant, path.steps)).most_common(MOST_PARTICIPANTS)]
    shown = [name for name in dict.fromkeys(map(_participant, steps)) if name in names]
    ids = {name: f"p{number}" for number, name in enumerate(shown, 1)}
    others = any(_participant(step) not in ids for step in steps)
    lines = ["sequenceDiagram", f"    participant p0 as {escaped(path.agent or path.name)}"]
    lines += [f"    participant {id} as {escaped(name)}" for name, id in ids.items()]
    lines += ["    participant px as other"] if others else []
    at = 0
    for fold in find_folds([(step.label, step.name, step.status) for step in steps]):
        lines += [line for step in steps[at : fold.first] for line in _messages(step, ids)]
        lines.append(f"    loop {fold.times} times")
        pattern = steps[fold.first : fold.first + fold.pattern]
        lines += [f"    {line}" for step in pattern for line in _messages(step, ids)]
        lines.append("    end")
        at = fold.end
    lines += [line for step in steps[at:] for line in _messages(step, ids)]
    if len(path.steps) > MOST_MESSAGES:
        lines.append(f"    Note over p0: {len(path.steps) - MOST_MESSAGES} more steps")
    return "\n".join(lines) + "\n"


def state_diagram(path: RunPath) -> str:
    """Return the phases of a run and its changes between them; without phases, its steps."""
    phases = [step.phase for step in path.steps]
    states = phases if any(phases) else list(path.labels)
    visited = [state for at, state in enumerate(states) if at == 0 or state != states[at - 1]]
    distinct = list(dict.fromkeys(visited))[:MOST_STATES]
    ids = {state: f"s{number}" for number, state in enumerate(distinct, 1)}
    changes = Counter(pair for pair in pairwise(visited) if ids.keys() >= {*pair})
    lines = ["stateDiagram-v2"]
    lines += [f"    {id} : {escaped(state or '(no phase)')}" for state, id in ids.items()]
    if visited:
        lines.append(f"    [*] --> {ids[visited[0]]}")
    for (source, target), times in list(changes.items())[:MOST_EDGES]:
        lines.append(f"    {ids[source]} --> {ids[target]} : ×{times}")
    if visited and visited[-1] in ids and path.status != "running":
        lines.append(f"    {ids[visited[-1]]} --> [*] : {escaped(path.status)}")
    return "\n".join(lines) + "\n"


def _participant(step: PathStep) -> str:
    if step.kind == "request":
        return step.label.partition(" ")[2].partition("/")[0] or step.label
    return step.name or step.label


def _messages(step: PathStep, ids: dict[str, str]) -> list[str]:
    other = ids.get(_participant(step), "px")
    said = f"{step.place} {step.label}"
    lines = [f"    p0->>{other}: {escaped(said)}"]
    took = "" if step.duration_ns is None else brief(step.duration_ns)
    if step.status == "error":
        lines.append(f"    {other}--xp0: {escaped(' '.join(filter(None, (step.failure, took))))}")
    elif step.status == "ok":
        lines.append(f"    {other}-->>p0: {took or 'done'}")
    return lines
