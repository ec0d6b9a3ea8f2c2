"""The lines of ``playhead agents``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from playhead_analysis.agents.graph import AgentEdge, AgentGraph
from playhead_cli.output.analysis.flow import table_lines
from playhead_cli.output.styles import ERROR, FAINT, TITLE, StyledLine
from playhead_cli.output.words import count, took

MOST_EDGES = 200


def agent_lines(graph: AgentGraph) -> Iterator[Text | StyledLine]:
    """Yield the graph of agents that talk: its edges, the bottleneck, and errors."""
    requests = sum(edge.requests for edge in graph.edges)
    yield StyledLine(
        [
            (", ".join(graph.runs[:3]), TITLE),
            (f" and {len(graph.runs) - 3} more" if len(graph.runs) > 3 else "", TITLE),
            (f"  {count(len(graph.agents), 'agent')}, {count(requests, 'request')}", ""),
        ]
    )
    if not graph.edges:
        yield Text("  no agent asked another one", style=FAINT)
        return
    yield from table_lines(
        ("FROM", "TO", "BY", "REQUESTS", "WAITED", "OWN", "FAILED", "UNANSWERED", "FIRST"),
        (_row(edge) for edge in graph.edges[:MOST_EDGES]),
    )
    if len(graph.edges) > MOST_EDGES:
        yield Text(f"  {len(graph.edges) - MOST_EDGES} more; --json has all", style=FAINT)
    if graph.bottleneck is not None:
        slow = graph.edges[graph.bottleneck]
        yield Text(f"bottleneck: {slow.source} → {slow.target}, {took(slow.own_ns)} of its own")
    for edge in graph.edges[:MOST_EDGES]:
        if edge.failures:
            yield StyledLine(
                [(f"{edge.source} → {edge.target}: ", FAINT), ("; ".join(edge.failures), ERROR)]
            )


def _row(edge: AgentEdge) -> tuple[str, ...]:
    kinds = ", ".join(f"{kind} ×{number}" for kind, number in edge.kinds.items())
    return (
        edge.source,
        edge.target,
        f"{edge.channel}: {kinds}" if kinds else edge.channel,
        str(edge.requests),
        took(edge.waited_ns) if edge.waited_ns else "",
        took(edge.own_ns) if edge.own_ns else "",
        str(edge.failed or ""),
        str(edge.unanswered or ""),
        edge.example,
    )
