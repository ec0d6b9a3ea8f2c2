"""``/v1/runs/RUN/steps/STEP/blame``: where the arguments of a call come from."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from playhead_receiver.api.context import Reading, RunName
from playhead_receiver.api.problems import NotFound
from playhead_receiver.queries.runs_with_value import blamed_with_runs
from playhead_receiver.storage.api.search import Search
from playhead_replay.derived.blame import Blame, blame

router = APIRouter(tags=["analysis"])


@router.get("/v1/runs/{run}/steps/{step}/blame", response_model=Blame)
def blame_step(
    context: Reading,
    run: RunName,
    step: Annotated[int, Path(ge=1, le=100_000_000)],
    call: Annotated[int | None, Query(ge=1, le=100_000, description="Only this tool call.")] = None,
    argument: Annotated[
        str, Query(max_length=500, description="`to`, `items.0.id`; default: all.")
    ] = "",
    value: Annotated[str, Query(max_length=10_000, description="Look for this text instead.")] = "",
    runs: Annotated[bool, Query(description="Also name the other runs that hold each value.")] = False,
) -> Response:
    """Show where the arguments of the calls at a step come from, the earliest source first."""
    loaded = context.read(run)
    at = loaded.step(step)
    if at is None:
        raise NotFound(f"{loaded.name} has no step {step}")
    found = blame(loaded, at, place=call, path=argument, text=value)
    if runs:
        found = blamed_with_runs(context.offered(Search), found, loaded.trace_id)
    return Response(msgspec.json.encode(found), media_type="application/json")
