"""``/v1/runs/RUN/findings``, ``reports``, ``decisions``, ``states``, ``scores``: what a run means."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from playhead_receiver.api.context import Reading, RunName
from playhead_receiver.api.models.runs import (
    RunDecisions,
    RunFindings,
    RunReports,
    RunScores,
    RunTransitions,
)
from playhead_receiver.api.routes.one_run.tool_calls import failures_to_json
from playhead_replay import Run
from playhead_replay.decisions import decisions_of
from playhead_replay.transitions import session_of, transitions_of

router = APIRouter(tags=["runs"])


@router.get("/v1/runs/{run}/findings", response_model=RunFindings)
def list_findings(context: Reading, run: RunName) -> Response:
    """Return failures, loops, signals, decisions, states and reports of a run in one response."""
    loaded = context.read(run)
    found = {
        **failures_to_json(loaded),
        **_states(loaded),
        "decisions": [one.to_json() for one in decisions_of(loaded)],
        "reports": [report.to_json() for report in loaded.reports],
    }
    return Response(msgspec.json.encode(found), media_type="application/json")


@router.get("/v1/runs/{run}/reports", response_model=RunReports)
def list_reports(context: Reading, run: RunName) -> Response:
    """List what the programs of a run reported about themselves, such as decisions, by time."""
    reports = [report.to_json() for report in context.read(run).reports]
    return Response(msgspec.json.encode({"reports": reports}), media_type="application/json")


@router.get("/v1/runs/{run}/decisions", response_model=RunDecisions)
def list_decisions(context: Reading, run: RunName) -> Response:
    """List the decisions of a run, reported or derived, each with thought, actions and outcome."""
    loaded = context.read(run)
    decisions = [one.to_json() for one in decisions_of(loaded)]
    return Response(msgspec.json.encode({"decisions": decisions}), media_type="application/json")


@router.get("/v1/runs/{run}/states", response_model=RunTransitions)
def list_states(context: Reading, run: RunName) -> Response:
    """Return the session of a run, and the transitions between its states, reported or derived."""
    return Response(msgspec.json.encode(_states(context.read(run))), media_type="application/json")


@router.get("/v1/runs/{run}/scores", response_model=RunScores)
def list_scores(context: Reading, run: RunName) -> Response:
    """List the results of evaluations of a run by time: `gen_ai.evaluation.result`, from any sender."""
    loaded = context.read(run)
    steps = loaded.steps_of_spans() if loaded.scores else {}
    scores = [score.to_json(steps.get(score.span_id)) for score in loaded.scores]
    return Response(msgspec.json.encode({"scores": scores}), media_type="application/json")


def _states(run: Run) -> dict[str, Any]:
    transitions = transitions_of(run)
    return {
        "session": session_of(run, transitions).to_json(),
        "transitions": [one.to_json() for one in transitions],
    }
