"""A diagram of one run, by the name of its format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from playhead_analysis.agents.communications import communications_of
from playhead_analysis.agents.graph import graph_of
from playhead_analysis.diagrams import dot, mermaid
from playhead_analysis.flows.flow import flow_of
from playhead_analysis.paths import path_of
from playhead_replay.run.run import Run
from playhead_replay.timeline.tool_calls import tool_calls_of

DiagramFormat: TypeAlias = Literal["sequence", "states", "flow", "dot", "agents", "messages"]
"""Mermaid: who called whom, phases, steps, agents that asked others, requests between agents in order;
``dot``: steps for Graphviz."""
FORMATS: Final[tuple[DiagramFormat, ...]] = get_args(DiagramFormat)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiagram:
    """A run as the text of a diagram."""

    schema_version: int = 1
    run: str
    format: DiagramFormat
    text: str


def draw(run: Run, form: DiagramFormat) -> RunDiagram:
    """Return a diagram of a run."""
    return RunDiagram(run=run.name, format=form, text=_text(run, form))


def _text(run: Run, form: DiagramFormat) -> str:
    if form == "agents":
        return mermaid.agent_chart(graph_of({run.name: communications_of(run)}))
    if form == "messages":
        return mermaid.agent_sequence(communications_of(run))
    path = path_of(run, tool_calls_of(run))
    if form == "sequence":
        return mermaid.sequence_diagram(path)
    if form == "states":
        return mermaid.state_diagram(path)
    return (mermaid.flowchart if form == "flow" else dot.graph)(flow_of([path]))
