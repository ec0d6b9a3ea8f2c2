"""The lines of ``playhead flow``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from playhead_analysis.flows.flow import BranchPoint, Flow
from playhead_analysis.flows.graph import FlowEdge
from playhead_analysis.folding import folded
from playhead_cli.output.columns import in_columns
from playhead_cli.output.styles import ERROR, FAINT, TITLE, StyledLine
from playhead_cli.output.words import count, took

MOST_POINTS = 8
MOST_EDGES = 40
MOST_BRANCHES = 5


def flow_lines(flow: Flow) -> Iterator[Text | StyledLine]:
    """Yield a flow as lines: its sums, its ways, its graph, and the points at which runs part."""
    failed = f", {flow.failed} failed" if flow.failed else ""
    yield StyledLine(
        [
            (count(flow.runs, "run"), TITLE),
            (f"{failed}, {count(flow.steps, 'step')}, {count(flow.distinct_ways, 'distinct way')}", ""),
        ]
    )
    if flow.runs:
        yield from _ways(flow)
        yield from _graph(flow)
        yield from _points(flow)


def table_lines(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[Text | StyledLine]:
    """Yield rows below their head, in columns."""
    for number, line in enumerate(in_columns([head, *rows])):
        yield Text(f"  {line}", style="" if number else FAINT)


def percent(share: float) -> str:
    """Return a share: ``85 %``, ``0.4 %``."""
    return f"{share * 100:.0f} %" if share >= 0.0095 or not share else f"{share * 100:.1f} %"


def _ways(flow: Flow) -> Iterator[Text | StyledLine]:
    yield Text("")
    yield Text("WAYS", style=FAINT)
    for way in flow.ways:
        time = "" if way.median_ns is None else f"  {took(way.median_ns)}"
        yield StyledLine(
            [
                (f"{way.count:>6} {percent(way.share):>6}{time}  ", ""),
                (folded(way.steps), ""),
                (f"  {way.failed} failed" if way.failed else "", ERROR),
                (f"  {', '.join(way.examples[:1])}", FAINT),
            ]
        )
    if len(flow.ways) < flow.distinct_ways:
        yield Text(f"       {flow.distinct_ways - len(flow.ways)} more; -n shows more", style=FAINT)
    yield Text(
        f"       a way that {percent(flow.unseen_share)} of runs take may still be unseen", style=FAINT
    )


def _graph(flow: Flow) -> Iterator[Text | StyledLine]:
    shown = [edge for edge in flow.edges if not edge.is_rare]
    yield Text("")
    yield Text("STEPS", style=FAINT)
    nodes = [node for node in flow.nodes if node.kind not in ("start", "end")]
    yield from table_lines(
        ("STEP", "COUNT", "RUNS", "FAILED", "MEDIAN", "P95"),
        (
            (
                node.label,
                str(node.count),
                str(node.runs),
                _failures(node.failures, node.failure_codes),
                "" if node.median_ns is None else took(node.median_ns),
                "" if node.p95_ns is None else took(node.p95_ns),
            )
            for node in nodes[:MOST_EDGES]
        ),
    )
    yield Text("")
    yield Text("WHAT FOLLOWS WHAT", style=FAINT)
    yield from table_lines(
        ("FROM", "TO", "COUNT", "SHARE", "DEPENDENCY", "AFTER", "P95"),
        (_edge(edge) for edge in shown[:MOST_EDGES]),
    )
    hidden = len(flow.edges) - len(shown[:MOST_EDGES])
    if hidden:
        yield Text(f"{count(hidden, 'rare edge')} not shown; --rare shows them", style=FAINT)


def _failures(number: int, codes: dict[str, int]) -> str:
    return f"{number} {', '.join(codes)}".strip() if number else ""


def _edge(edge: FlowEdge) -> tuple[str, ...]:
    return (
        edge.source,
        edge.target,
        str(edge.count),
        percent(edge.share),
        f"{edge.dependency:.2f}",
        "" if edge.median_ns is None else took(edge.median_ns),
        "" if edge.p95_ns is None else took(edge.p95_ns),
    )


def _points(flow: Flow) -> Iterator[Text | StyledLine]:
    for kind, title, why in (
        ("decision", "DECISIONS", "a model chose"),
        ("variation", "VARIATIONS", "no model chose"),
    ):
        points = [point for point in flow.points if point.kind == kind]
        if not points:
            continue
        yield Text("")
        yield StyledLine([(title, FAINT), (f"  {why}", FAINT)])
        for point in points[:MOST_POINTS]:
            yield _point(point, flow.margin)
        if len(points) > MOST_POINTS:
            yield Text(f"  {len(points) - MOST_POINTS} more; --json has all", style=FAINT)


def _point(point: BranchPoint, margin: float) -> Text | StyledLine:
    where = f"{point.at} after {point.after}" if point.after else point.at
    branches = [f"{one.target} {percent(one.share)}" for one in point.branches[:MOST_BRANCHES]]
    if len(point.branches) > MOST_BRANCHES:
        branches.append(f"{len(point.branches) - MOST_BRANCHES} more")
    known = (
        "" if point.is_known else f"  {point.count} of {point.runs_needed} needed for ±{percent(margin)}"
    )
    return StyledLine([("  ", ""), (where, TITLE), (f": {', '.join(branches)}", ""), (known, FAINT)])
