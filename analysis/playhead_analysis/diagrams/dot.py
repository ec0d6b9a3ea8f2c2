"""DOT text for Graphviz."""

from __future__ import annotations

import re
from typing import Final

from playhead_analysis.agents.graph import AgentGraph
from playhead_analysis.diagrams.mermaid import edge_label
from playhead_analysis.durations import brief
from playhead_analysis.flows.flow import Flow

_SPECIAL: Final = re.compile(r'[\\"]')


def quoted(text: str) -> str:
    r"""Return a text as a DOT string, in which nothing is syntax.

    >>> quoted('a"b\\n')
    '"a\\"b\\\\n"'
    """
    return '"' + _SPECIAL.sub(lambda found: f"\\{found[0]}", text).replace("\n", " ") + '"'


def graph(flow: Flow, with_rare: bool = False) -> str:
    """Return the graph of a flow. Rare edges are left out, or dotted ``with_rare``."""
    lines = ["digraph flow {", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    edges = [edge for edge in flow.edges if with_rare or not edge.is_rare]
    used = {one for edge in edges for one in (edge.source, edge.target)}
    for node in flow.nodes:
        if node.label not in used:
            continue
        is_end = node.kind in ("start", "end")
        label = node.label if is_end else f"{node.label} ×{node.count}"
        label += f", {node.failures} failed" if node.failures else ""
        shape = "oval" if is_end else "hexagon" if node.kind == "model" else "box"
        color = ", color=red" if node.failures else ""
        lines.append(f"  {quoted(node.label)} [label={quoted(label)}, shape={shape}{color}];")
    most = max((edge.count for edge in edges), default=1)
    for edge in edges:
        time = f", {brief(edge.median_ns)}" if edge.median_ns else ""
        style = ", style=dotted" if edge.is_rare else ""
        width = 1 + 3 * edge.count / most
        ends = f"{quoted(edge.source)} -> {quoted(edge.target)}"
        label = quoted(f"{edge.count}{time}")
        lines.append(f"  {ends} [label={label}, penwidth={width:.1f}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def agent_graph(graph: AgentGraph) -> str:
    """Return the graph of agents that talk. The arrow of the bottleneck is thick, failures are red."""
    lines = ["digraph agents {", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    lines += [f"  {quoted(name)};" for name in graph.agents]
    for at, edge in enumerate(graph.edges):
        width = 3 if at == graph.bottleneck else 1
        color = ", color=red" if edge.failed else ""
        ends = f"{quoted(edge.source)} -> {quoted(edge.target)}"
        lines.append(f"  {ends} [label={quoted(edge_label(edge))}, penwidth={width}{color}];")
    return "\n".join([*lines, "}"]) + "\n"
