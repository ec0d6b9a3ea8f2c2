"""``/v1/runs/{run}/…``: outline, chunks, transcript, state at a step, and matches of a text."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Response
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_receiver.api.context import Limit, Reading, RunName
from playhead_receiver.api.models.reading import (
    ChunkTimes,
    Kept,
    MomentOfRun,
    Outline,
    SpanTexts,
    TextPlaces,
    Transcript,
)
from playhead_receiver.api.reading import (
    kept_of,
    last_state,
    moment_shown,
    outline_of,
    places_of,
    transcript_of,
)
from playhead_receiver.queries.run_texts import texts_of_spans
from playhead_receiver.storage import RunSummary, Store
from playhead_receiver.storage.spans.whole_spans import (
    attributes_of,
    reference_of,
    request_reference,
    span_of,
)
from playhead_receiver.storage.values.stored import StoredTape
from playhead_replay.timeline import state_after_step
from playhead_semconv import attributes as a

router = APIRouter(tags=["reading"])

SpanIds = Annotated[
    str,
    Query(
        pattern="^[0-9a-f]{16}(,[0-9a-f]{16}){0,199}$",
        description="Comma-separated span ids, at most 200.",
    ),
]


@router.get("/v1/runs/{run}/outline", response_model=Outline)
def show_outline(
    context: Reading,
    run: RunName,
    limit: Annotated[
        int | None, Query(ge=1, le=10_000_000, description="Maximum number of spans. Default: all.")
    ] = None,
) -> Response:
    """Get all spans of a run in columns, without content."""
    summary = context.run(run)
    context.note("read", summary.trace_id)
    tree = context.tree(summary)
    outline = outline_of(context.store, summary, tree, limit)
    return Response(outline.model_dump_json(), media_type="application/json")


@router.get("/v1/runs/{run}/chunks")
def show_chunks(
    context: Reading,
    run: RunName,
    spans: SpanIds,
) -> ChunkTimes:
    """Get the arrival times of response chunks, for finished calls and attempts."""
    summary = context.run(run)
    context.note("read", summary.trace_id)
    return chunk_times(context.store, summary, [bytes.fromhex(one) for one in spans.split(",")])


@router.get("/v1/runs/{run}/texts")
def show_texts(context: Reading, run: RunName, spans: SpanIds) -> SpanTexts:
    """Get what rows show of spans: kind, tool or path, and a short text."""
    summary = context.run(run)
    context.note("read", summary.trace_id)
    ids = [bytes.fromhex(one) for one in spans.split(",")]
    found = texts_of_spans(context.store, bytes.fromhex(summary.trace_id), ids, context.references)
    return SpanTexts(
        span_id=[span_id.hex() for span_id in found],
        kind=[one.kind for one in found.values()],
        label=[one.label for one in found.values()],
        text=[one.text for one in found.values()],
    )


@router.get("/v1/runs/{run}/kept")
def show_kept(context: Reading, run: RunName) -> Kept:
    """List what the recording of a run contains, and which level records the rest."""
    summary = context.run(run)
    context.note("read", summary.trace_id)
    return kept_of(context.store, summary)


@router.get("/v1/runs/{run}/transcript")
def show_transcript(context: Reading, run: RunName) -> Transcript:
    """Get the conversation of a run, without repeated messages."""
    return transcript_of(context.read(run))


@router.get("/v1/runs/{run}/moment")
def show_moment(
    context: Reading,
    run: RunName,
    after: Annotated[
        int | None,
        Query(
            ge=0,
            le=100_000_000,
            description="A step; 0: before the first. Default: the last one that changed a state.",
        ),
    ] = None,
    rows: Annotated[
        int, Query(ge=0, le=1000, description="Maximum number of rows per database table.")
    ] = 100,
) -> MomentOfRun:
    """Get the state after a step: conversations, states, files, databases, checkpoints, output."""
    loaded = context.read(run)
    return moment_shown(state_after_step(loaded, last_state(loaded) if after is None else after), rows)


@router.get("/v1/runs/{run}/places")
def find_places(
    context: Reading,
    run: RunName,
    text: Annotated[str, Query(min_length=1, max_length=500)],
    limit: Limit = 100,
) -> TextPlaces:
    """Find a text in a run: in names, errors and messages."""
    found = list(islice(places_of(context.read(run), text), limit))
    return TextPlaces(places=found, truncated=len(found) == limit)


MOST = 256
"""Maximum number of times of one response: more are indistinguishable in a bar."""
_CALL = frozenset((a.PLAYHEAD_EXCHANGE_REF,))


def chunk_times(store: Store, run: RunSummary, span_ids: Collection[bytes]) -> ChunkTimes:
    """Arrival times of the chunks of finished attempts; for a call, of its last attempt."""
    found = ChunkTimes(span_id=[], time_ns=[])
    tapes: dict[bytes, StoredTape] = {}
    for stored in store.spans(bytes.fromhex(run.trace_id), span_ids):
        envelope = ResourceSpans.FromString(stored.otlp)
        span = span_of(envelope)
        named = reference_of(attributes_of(span, _CALL)) or request_reference(envelope)
        if named is None:
            continue
        instance, id = named
        if instance not in tapes:
            tapes[instance] = store.tape(instance)
        exchange = tapes[instance].exchange(id)
        if exchange is None:
            continue
        first, last = span.start_time_unix_nano, span.end_time_unix_nano
        times = [one.time_ns - run.started_ns for one in exchange.parts if first <= one.time_ns <= last]
        found.span_id.append(span.span_id.hex())
        found.time_ns.append(_thinned(times))
    return found


def _thinned(times: list[int]) -> list[int]:
    """At most `MOST` times, including the first and the last."""
    if len(times) <= MOST:
        return times
    return [times[at * (len(times) - 1) // (MOST - 1)] for at in range(MOST)]
