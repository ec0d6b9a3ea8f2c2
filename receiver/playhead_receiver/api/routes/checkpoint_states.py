"""States of checkpoints as JSON, MessagePack or bytes, for senders without a client of playhead."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from playhead_checkpoint.store.protocol import Lineage
from playhead_core.errors import PlayheadError
from playhead_receiver.api.context import Ingesting, Reading
from playhead_receiver.api.models.checkpoints import StateDifference, StateDifferences
from playhead_receiver.api.routes.checkpoints import Body, Id, Text
from playhead_receiver.ingest.states import BYTES, JSON, MSGPACK, read_state
from playhead_replay.json_objects.recorded import StoredCheckpoint
from playhead_replay.timeline.checkpoints import checkpoint_object
from playhead_replay.timeline.shown_values import shown_value

MOST_CHANGES = 10_000
_ANY: dict[str, Any] = {kind: {"schema": {}} for kind in (JSON, MSGPACK[0], BYTES)}
_SENT: dict[str, Any] = {"requestBody": {"required": True, "content": _ANY}}
_STATES: dict[int | str, Any] = {200: {"content": _ANY}}

router = APIRouter(tags=["checkpoints"])

Trace = Annotated[str, Query(pattern="^([0-9a-f]{32})?$", description="Trace id of its run.")]
SpanId = Annotated[str, Query(pattern="^([0-9a-f]{16})?$", description="Span in which it was made.")]
Parent = Annotated[str, Query(pattern="^([0-9a-f]{32})?$", description="Checkpoint before it.")]
Time = Annotated[int, Query(ge=0, lt=1 << 63, description="Nanoseconds since 1970; 0: now.")]
Labels = Annotated[list[str], Query(max_length=64, description="May be repeated.")]


def _kind(request: Request) -> str:
    return request.headers.get("content-type", BYTES)


def _accepted(request: Request) -> str:
    return request.headers.get("accept", "").lower()


@router.put("/v1/checkpoints/{id}/state", openapi_extra=_SENT)
def put_state(
    context: Ingesting,
    id: Id,
    body: Body,
    kind: Annotated[str, Depends(_kind)],
    run: Trace = "",
    span: SpanId = "",
    parent: Parent = "",
    time_ns: Time = 0,
    label: Labels = [],  # noqa: B006  FastAPI copies it
    thread: Text = "",
    name: Text = "",
) -> StoredCheckpoint:
    """Store a state: `application/json`, `application/msgpack`, or the bytes of any other type.

    The sender chooses the id, for example a UUID without dashes. Sending the same state again changes
    nothing; another state under the same id is refused. Parts that other states have are stored once.
    """
    ids = (bytes.fromhex(one) for one in (run, span, parent, id))
    of_run, of_span, before, own = ids
    lineage = Lineage(of_run, of_span, "manual", before, time_ns, tuple(label), own, thread, name)
    try:
        stored = context.checkpoints.put(read_state(body, kind), lineage)
    except PlayheadError:
        context.tallies.refused()
        raise
    return checkpoint_object(stored)


@router.get("/v1/checkpoints/{id}/state", response_class=Response, responses=_STATES)
def get_state(context: Reading, id: Id, accepted: Annotated[str, Depends(_accepted)]) -> Response:
    """Get a state: bytes as they were sent, anything else as JSON, or as MessagePack if accepted.

    JSON has bytes within a state as base64, and values of classes as their parts.
    """
    state = context.checkpoints.state(bytes.fromhex(id))
    context.note("read", f"checkpoint {id}")
    if isinstance(state, bytes):
        return Response(state, media_type=BYTES)
    if any(kind in accepted for kind in MSGPACK):
        return Response(msgspec.msgpack.encode(state, enc_hook=shown_value), media_type=MSGPACK[0])
    return Response(msgspec.json.encode(shown_value(state)), media_type=JSON)


@router.get("/v1/checkpoints/{id}/differences")
def get_differences(
    context: Reading,
    id: Id,
    since: Annotated[str, Query(pattern="^[0-9a-f]{32}$", description="The earlier checkpoint.")],
) -> StateDifferences:
    """Compare a state with that of another checkpoint, which any sender may have stored."""
    found = context.checkpoints.difference(bytes.fromhex(since), bytes.fromhex(id))
    context.note("read", f"checkpoint {id}")
    return StateDifferences(
        count=len(found),
        differences=[
            StateDifference(
                path=[one if isinstance(one, int) else str(one) for one in change.path],
                kind=change.kind,
                before=shown_value(change.before),
                after=shown_value(change.after),
            )
            for change in found[:MOST_CHANGES]
        ],
    )
