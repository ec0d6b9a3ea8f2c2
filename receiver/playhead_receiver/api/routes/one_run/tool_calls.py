"""``/v1/runs/RUN/tool-calls``, ``failures``, ``time``: tool calls in its messages, failures, time."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from playhead_receiver.api.context import Reading, RunName
from playhead_receiver.api.models.runs import RunFailures, RunToolCalls
from playhead_replay import Run
from playhead_replay.derived.attribution import Attribution, attribution_of
from playhead_replay.derived.loops import loops_of
from playhead_replay.derived.signals import signals_of
from playhead_replay.failures.find import failures_of, status_reason
from playhead_replay.run.outputs import unrecorded_traffic
from playhead_replay.timeline.tool_calls import tool_calls_of

router = APIRouter(tags=["runs"])


@router.get("/v1/runs/{run}/tool-calls", response_model=RunToolCalls)
def list_tool_calls(context: Reading, run: RunName) -> Response:
    """List the tool calls of a run: a call in one answer and its result in a later request."""
    calls = [call.to_json() for call in tool_calls_of(context.read(run))]
    return Response(msgspec.json.encode({"tool_calls": calls}), media_type="application/json")


@router.get("/v1/runs/{run}/failures", response_model=RunFailures)
def list_failures(context: Reading, run: RunName) -> Response:
    """List the failures of a run with type, code, step and evidence, its loops and signals."""
    found = failures_to_json(context.read(run))
    return Response(msgspec.json.encode(found), media_type="application/json")


@router.get("/v1/runs/{run}/time", response_model=Attribution)
def split_time(context: Reading, run: RunName) -> Response:
    """Split the time and cost of a run: models, tools, retries, waiting for a person, own code."""
    found = attribution_of(context.read(run))
    return Response(msgspec.json.encode(found), media_type="application/json")


def failures_to_json(run: Run) -> dict[str, Any]:
    """Return the failures, loops and signals of a run, as `RunFailures` describes them."""
    failures = failures_of(run)
    return {
        "loops": [loop.to_json() for loop in loops_of(run)],
        "signals": [signal.to_json() for signal in signals_of(run)],
        "failures": [failure.to_json() for failure in failures],
        "status_reason": status_reason(run, failures) or None,
        "unrecorded": unrecorded_traffic(run.tapes),
    }
