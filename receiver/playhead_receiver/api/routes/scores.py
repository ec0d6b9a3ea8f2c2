"""``/v1/runs/RUN/scores``: results of evaluations of a run."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from playhead_receiver.api.context import Reading, RunName
from playhead_receiver.api.models.runs import RunScores
from playhead_replay import Run

router = APIRouter(tags=["runs"])


@router.get("/v1/runs/{run}/scores", response_model=RunScores)
def list_scores(context: Reading, run: RunName) -> Response:
    """List the results of evaluations of a run by time: `gen_ai.evaluation.result`, from any sender."""
    trace_id = context.run(run).trace_id
    context.note("read", trace_id)
    loaded = Run.load(context.store, trace_id)
    steps = loaded.steps_of_spans() if loaded.scores else {}
    scores = [score.to_json(steps.get(score.span_id)) for score in loaded.scores]
    return Response(msgspec.json.encode({"scores": scores}), media_type="application/json")
