"""``/v1/runs/{run}/…``: a run as it is read. Outline, transcript, a moment, places of a text."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Response

from playhead_receiver.api.asked import ApiRequest, Limit, Reading, RunName
from playhead_receiver.api.chunks import chunk_times
from playhead_receiver.api.models.reading import (
    ChunkTimes,
    Kept,
    MomentOfRun,
    Outline,
    TextPlaces,
    Transcript,
)
from playhead_receiver.api.reading import kept_of, moment_shown, outline_of, places_of, transcript_of
from playhead_replay import Run

router = APIRouter(tags=["reading"])


@router.get("/v1/runs/{run}/outline", response_model=Outline)
def show_outline(
    asked: Reading,
    run: RunName,
    limit: Annotated[
        int | None, Query(ge=1, le=10_000_000, description="Maximum number of spans. Default: all.")
    ] = None,
) -> Response:
    """Get all spans of a run in columns, without content."""
    summary = asked.run(run)
    asked.note("read", summary.trace_id)
    tree = asked.trees.tree(asked.store, bytes.fromhex(summary.trace_id))
    outline = outline_of(asked.store, summary, tree, limit)
    return Response(outline.model_dump_json(), media_type="application/json")


@router.get("/v1/runs/{run}/chunks")
def show_chunks(
    asked: Reading,
    run: RunName,
    spans: Annotated[
        str,
        Query(
            pattern="^[0-9a-f]{16}(,[0-9a-f]{16}){0,199}$",
            description="Comma-separated span ids, at most 200.",
        ),
    ],
) -> ChunkTimes:
    """Get the arrival times of response chunks, for finished calls and attempts."""
    summary = asked.run(run)
    asked.note("read", summary.trace_id)
    return chunk_times(asked.store, summary, [bytes.fromhex(one) for one in spans.split(",")])


@router.get("/v1/runs/{run}/kept")
def show_kept(asked: Reading, run: RunName) -> Kept:
    """List what the recording of a run contains, and which level records the rest."""
    summary = asked.run(run)
    asked.note("read", summary.trace_id)
    return kept_of(asked.store, summary)


@router.get("/v1/runs/{run}/transcript")
def show_transcript(asked: Reading, run: RunName) -> Transcript:
    """The conversation of a run, without repeated messages."""
    return transcript_of(_loaded(asked, run))


@router.get("/v1/runs/{run}/moment")
def show_moment(
    asked: Reading,
    run: RunName,
    after: Annotated[int, Query(ge=0, le=100_000_000, description="A step; 0: before the first.")],
    rows: Annotated[
        int, Query(ge=0, le=1000, description="Maximum number of rows per database table.")
    ] = 100,
) -> MomentOfRun:
    """Get the state after a step: conversations, reported states, files, database rows, output."""
    from playhead_replay.timeline import state_after_step

    return moment_shown(state_after_step(_loaded(asked, run), after), rows)


@router.get("/v1/runs/{run}/places")
def find_places(
    asked: Reading,
    run: RunName,
    text: Annotated[str, Query(min_length=1, max_length=500)],
    limit: Limit = 100,
) -> TextPlaces:
    """Find a text in a run: in names, errors and messages."""
    found = list(islice(places_of(_loaded(asked, run), text), limit))
    return TextPlaces(places=found, truncated=len(found) == limit)


def _loaded(asked: ApiRequest, name: str) -> Run:
    trace_id = asked.run(name).trace_id
    asked.note("read", trace_id)
    return Run.load(asked.store, trace_id)
