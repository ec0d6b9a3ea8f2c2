"""The graph of agents that talk: an edge for each pair and channel, summed over some runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from playhead_analysis.agents.communications import VERSION, Communication, covered_ns

MOST_FAILURES: Final = 5
"""Errors that an edge names."""


@dataclass(frozen=True, slots=True)
class AgentEdge:
    """All requests of an agent to another one over one channel."""

    source: str
    target: str
    channel: str
    """`call`, `tool`, `handoff`, `mcp`, `http`, `rpc`, `queue`, `process`, `trigger`; of messages the
    one that the program names, else `message`."""
    requests: int
    answered: int
    unanswered: int
    """Requests that expect an answer and have none."""
    failed: int
    kinds: dict[str, int]
    """Kinds of messages, and methods of MCP, each with its number."""
    waited_ns: int
    """Time in which at least one of the requests waited for its answer."""
    own_ns: int
    """Time in which the target worked itself and did not wait for other agents, over all requests."""
    longest_ns: int
    failures: list[str]
    """Errors in one line each, the most frequent first, at most `MOST_FAILURES`."""
    example: str
    """The first request: ``refund-7:3``, or the run if it has no step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph:
    """The requests between the agents of some runs. It is derived, and never stored."""

    schema_version: int = 1
    derived: bool = True
    version: int = VERSION
    """Version of the rules; graphs of another version may differ."""
    runs: list[str]
    agents: list[str]
    """All that ask or are asked: agents, programs, services and MCP servers."""
    edges: list[AgentEdge]
    """In order of source, target and channel."""
    bottleneck: int | None
    """Index of the edge whose target took most time itself; null if none waited."""


def graph_of(runs: Mapping[str, Sequence[Communication]]) -> AgentGraph:
    """Return the graph of the communications of some runs, by the name of the run."""
    groups: dict[tuple[str, str, str], dict[str, list[Communication]]] = defaultdict(dict)
    for run, found in runs.items():
        for one in found:
            key = one.source, one.target, one.channel
            groups[key].setdefault(run, []).append(one)
    edges = [_edge(*key, groups[key]) for key in sorted(groups)]
    slowest = max(range(len(edges)), key=lambda at: edges[at].own_ns, default=None)
    return AgentGraph(
        runs=list(runs),
        agents=sorted({name for edge in edges for name in (edge.source, edge.target)}),
        edges=edges,
        bottleneck=slowest if slowest is not None and edges[slowest].own_ns else None,
    )


def _edge(
    source: str, target: str, channel: str, by_run: Mapping[str, Sequence[Communication]]
) -> AgentEdge:
    found = [one for some in by_run.values() for one in some]
    answered = [one for one in found if one.answered_ns is not None]
    failures = Counter(one.failure for one in found if one.failure)
    run, first = next((run, some[0]) for run, some in by_run.items())
    return AgentEdge(
        source,
        target,
        channel,
        len(found),
        len(answered),
        sum(one.expects_answer and one.answered_ns is None for one in found),
        sum(one.failed for one in found),
        dict(sorted(Counter(one.kind for one in found if one.kind).items())),
        sum(covered_ns(map(_range, some)) for some in by_run.values()),
        sum(one.own_ns for one in found),
        max((end - start for start, end in map(_range, found)), default=0),
        [text for text, _ in failures.most_common(MOST_FAILURES)],
        run if first.step is None else f"{run}:{first.step}",
    )


def _range(one: Communication) -> tuple[int, int]:
    return one.started_ns, max(one.answered_ns or one.started_ns, one.started_ns)
