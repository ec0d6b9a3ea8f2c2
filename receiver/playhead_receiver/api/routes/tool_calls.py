"""``/v1/runs/RUN/tool-calls`` and ``failures``: tool calls in its messages, and its failures."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from playhead_receiver.api.context import Reading, RunName
from playhead_receiver.api.models.runs import RunFailures, RunToolCalls
from playhead_replay import Run
from playhead_replay.failures.find import failures_of, status_reason
from playhead_replay.timeline.tool_calls import tool_calls_of

router = APIRouter(tags=["runs"])


@router.get("/v1/runs/{run}/tool-calls", response_model=RunToolCalls)
def list_tool_calls(context: Reading, run: RunName) -> Response:
    """List the tool calls of a run: a call in one answer and its result in a later request."""
    trace_id = context.run(run).trace_id
    context.note("read", trace_id)
    calls = [call.to_json() for call in tool_calls_of(Run.load(context.store, trace_id))]
    return Response(msgspec.json.encode({"tool_calls": calls}), media_type="application/json")


@router.get("/v1/runs/{run}/failures", response_model=RunFailures)
def list_failures(context: Reading, run: RunName) -> Response:
    """List the failures of a run with type, code, step and evidence, derived from its steps."""
    trace_id = context.run(run).trace_id
    context.note("read", trace_id)
    loaded = Run.load(context.store, trace_id)
    failures = failures_of(loaded, tool_calls_of(loaded))
    found = {
        "failures": [failure.to_json() for failure in failures],
        "status_reason": status_reason(loaded, failures) or None,
    }
    return Response(msgspec.json.encode(found), media_type="application/json")
