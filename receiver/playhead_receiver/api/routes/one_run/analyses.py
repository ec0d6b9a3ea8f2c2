"""``/v1/runs/RUN/agents``, ``steps/summary``, ``diagram``: what the spans of a run show together."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from playhead_analysis.agents.communications import communications_of
from playhead_analysis.agents.graph import AgentGraph, graph_of
from playhead_analysis.diagrams.of_run import DiagramFormat, RunDiagram, draw
from playhead_analysis.paths import RunPath, path_of
from playhead_analysis.summaries.summary import FEWEST_LINES, LINES, PathSummary, summarize
from playhead_receiver.api.context import Reading, RunName
from playhead_replay.run.run import Run, once_per_run
from playhead_replay.timeline.tool_calls import tool_calls_of

router = APIRouter(tags=["analysis"])

StepNumber = Annotated[int, Query(ge=1, le=1_000_000_000)]


@router.get("/v1/runs/{run}/agents", response_model=AgentGraph)
def show_agents(context: Reading, run: RunName) -> Response:
    """Show which agents of a run asked which others, how often, how, and how long they waited."""
    loaded = context.read(run)
    return _answer(graph_of({loaded.name: communications_of(loaded)}))


@router.get("/v1/runs/{run}/steps/summary", response_model=PathSummary)
def summarize_steps(
    context: Reading,
    run: RunName,
    first: StepNumber = 1,
    last: Annotated[int | None, Query(ge=1, le=1_000_000_000, description="Default: the end.")] = None,
    lines: Annotated[int, Query(ge=FEWEST_LINES, le=1000)] = LINES,
) -> Response:
    """Summarize the steps of a run, or a range of them, in few lines. No model writes the summary."""
    return _answer(summarize(_path_of(context.read(run)), first, last, lines))


@router.get("/v1/runs/{run}/diagram", response_model=RunDiagram)
def draw_run(context: Reading, run: RunName, format: DiagramFormat = "sequence") -> Response:
    """Draw a run as text: Mermaid, or for `dot` Graphviz."""
    return _answer(draw(context.read(run), format))


@once_per_run
def _path_of(run: Run) -> RunPath:
    return path_of(run, tool_calls_of(run))


def _answer(found: object) -> Response:
    return Response(msgspec.json.encode(found), media_type="application/json")
