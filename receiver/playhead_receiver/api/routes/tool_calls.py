"""``/v1/runs/RUN/tool-calls``: tool calls in the messages of a run."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from playhead_receiver.api.context import Reading, RunName
from playhead_receiver.api.models.runs import RunToolCalls
from playhead_replay import Run
from playhead_replay.timeline.tool_calls import tool_calls_of

router = APIRouter(tags=["runs"])


@router.get("/v1/runs/{run}/tool-calls", response_model=RunToolCalls)
def list_tool_calls(context: Reading, run: RunName) -> Response:
    """List the tool calls of a run: a call in one answer and its result in a later request."""
    trace_id = context.run(run).trace_id
    context.note("read", trace_id)
    calls = [call.to_json() for call in tool_calls_of(Run.load(context.store, trace_id))]
    return Response(msgspec.json.encode({"tool_calls": calls}), media_type="application/json")
