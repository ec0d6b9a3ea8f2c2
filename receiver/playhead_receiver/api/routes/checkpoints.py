"""``/v1/checkpoints`` for `RemoteCheckpoints` and viewers; ``/v1/claims`` for `RemoteClaims`.

Bodies are MessagePack, as in `playhead_checkpoint.store.wire` and `playhead_checkpoint.claims.messages`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from playhead_checkpoint.claims import messages
from playhead_checkpoint.store import wire
from playhead_checkpoint.store.engine import NodesGone
from playhead_core.errors import CorruptTape, PlayheadError, UsageError
from playhead_receiver.api.context import Administrating, Controlling, Ingesting, Limit, Reading
from playhead_receiver.api.models.checkpoints import (
    CheckpointDeletion,
    CheckpointPage,
    Damages,
    FreedSpace,
    ThreadPage,
)
from playhead_receiver.api.problems import BodyTooLarge, NodesMissing
from playhead_replay.json_objects.recorded import StoredCheckpoint
from playhead_replay.timeline.checkpoints import checkpoint_object

PACKED: dict[int | str, Any] = {
    200: {"content": {wire.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}}
}
_SENT = {"requestBody": {"required": True, "content": PACKED[200]["content"]}}

router = APIRouter(tags=["checkpoints"])

Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="Id of the checkpoint.")]
OrId = Annotated[str, Query(pattern="^([0-9a-f]{32})?$")]
Text = Annotated[str, Query(max_length=1024)]


async def _body(request: Request) -> bytes:
    """Read the body up to the limit; one that says that it is larger is not read. `BodyTooLarge`."""
    found = bytearray()
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > wire.LARGEST_BODY_BYTES:
        raise BodyTooLarge(f"a request has at most {wire.LARGEST_BODY_BYTES} bytes")
    async for piece in request.stream():
        found += piece
        if len(found) > wire.LARGEST_BODY_BYTES:
            raise BodyTooLarge(f"a request has at most {wire.LARGEST_BODY_BYTES} bytes")
    return bytes(found)


Body = Annotated[bytes, Depends(_body)]


@contextmanager
def _taking() -> Generator[None, None, None]:
    """Report malformed content as an error of the sender."""
    try:
        yield
    except CorruptTape as problem:
        raise UsageError(problem.what, cause=problem.cause) from None


@contextmanager
def _keeping() -> Generator[None, None, None]:
    try:
        yield
    except NodesGone:
        raise NodesMissing("some of its nodes are neither stored nor in the request") from None


@router.get("/v1/checkpoints")
def list_checkpoints(
    context: Reading,
    limit: Limit = 100,
    run: OrId = "",
    before: OrId = "",
    thread: Text = "",
    before_name: Text = "",
) -> CheckpointPage:
    """List checkpoints, newest first; optionally of a ``run``, or older than ``before``.

    With ``thread``: those of a framework's thread, by descending name, before ``before_name``.
    """
    store = context.checkpoints
    if thread:
        found = store.of_thread(thread, before=before_name, limit=limit)
    else:
        wanted = bytes.fromhex(run) if run else None
        found = store.checkpoints(wanted, before=bytes.fromhex(before), limit=limit)
    context.note("read", "checkpoints")
    return CheckpointPage(checkpoints=[checkpoint_object(one) for one in found])


@router.get("/v1/checkpoint-threads")
def list_threads(context: Reading, limit: Limit = 100, start: Text = "", after: Text = "") -> ThreadPage:
    """List threads whose names start with ``start``, after ``after``."""
    names = (name for name in context.checkpoints.threads(start) if name > after)
    found = list(islice(names, limit))
    context.note("read", "threads")
    return ThreadPage(threads=found)


@router.get("/v1/checkpoint-damages")
def verify(context: Administrating) -> Damages:
    """Verify all checkpoints of the tenant, and list what is damaged or missing."""
    found = context.checkpoints.damages()
    context.note("read", "checkpoints")
    return Damages(damages=found)


@router.post("/v1/checkpoint-nodes", response_class=Response, responses=PACKED, openapi_extra=_SENT)
def nodes(context: Reading, body: Body) -> Response:
    """Get nodes by digest (sent concatenated): those that exist, as many as fit."""
    with _taking():
        wanted = wire.read_digests(body)
    found = context.checkpoints.nodes(wanted)
    context.note("read", "checkpoints")
    return _packed(wire.write_nodes(found))


@router.post("/v1/checkpoint-deletions")
def delete(context: Controlling, what: CheckpointDeletion) -> FreedSpace:
    """Delete checkpoints, their notes, and nodes that nothing else uses."""
    store = context.checkpoints
    freed = store.delete([bytes.fromhex(id) for id in what.ids])
    if what.run:
        freed = store.delete_run(bytes.fromhex(what.run))
    context.note("delete", f"checkpoints {what.run}".rstrip())
    return FreedSpace(checkpoints=freed.checkpoints, nodes=freed.nodes, stored_bytes=freed.stored_bytes)


@router.get("/v1/checkpoints/{id}")
def get_checkpoint(context: Reading, id: Id) -> StoredCheckpoint:
    """Get a checkpoint without its state."""
    found = context.checkpoints.checkpoint(bytes.fromhex(id))
    context.note("read", f"checkpoint {id}")
    return checkpoint_object(found)


@router.get("/v1/checkpoints/{id}/packed", response_class=Response, responses=PACKED)
def get_packed(context: Reading, id: Id) -> Response:
    """Get a checkpoint with its packed state, which refers to nodes, and its packed notes."""
    found = context.checkpoints.packed(bytes.fromhex(id))
    context.note("read", f"checkpoint {id}")
    return _packed(wire.write_packed(found))


@router.get("/v1/checkpoints/{id}/notes", response_class=Response, responses=PACKED)
def get_notes(context: Reading, id: Id) -> Response:
    """Get the packed notes of a checkpoint; they may exist before the checkpoint."""
    found = context.checkpoints.packed_notes(bytes.fromhex(id))
    context.note("read", f"checkpoint {id}")
    return _packed(wire.write_packed_notes(found))


@router.put("/v1/checkpoints/{id}", response_class=Response, responses=PACKED, openapi_extra=_SENT)
def put_checkpoint(context: Ingesting, id: Id, body: Body) -> Response:
    """Store a checkpoint and its nodes. Returns the stored one: an existing checkpoint of that id wins.

    409: it refers to nodes that are neither stored nor in the request.
    """
    try:
        with _taking():
            put = wire.read_put(body)
            if put.row.checkpoint.id != bytes.fromhex(id):
                raise UsageError("the checkpoint has another id")
        with _keeping():
            stored = context.checkpoints.write(put)
    except NodesMissing:  # the client sends them with the next request
        raise
    except PlayheadError:
        context.tallies.refused()
        raise
    context.tallies.put(put, stored)
    return _packed(wire.write_row(stored))


@router.put("/v1/checkpoints/{id}/notes", response_class=Response, responses=PACKED, openapi_extra=_SENT)
def put_notes(context: Ingesting, id: Id, body: Body) -> Response:
    """Add notes to a checkpoint, which may be stored later. 409 as for a checkpoint."""
    with _taking():
        notes = wire.read_notes(bytes.fromhex(id), body)
    with _keeping():
        context.checkpoints.write_notes(notes)
    return _packed(wire.write_packed_notes({}))


def _packed(data: bytes) -> Response:
    return Response(data, media_type=wire.MEDIA_TYPE)


_CONTENT: dict[str, Any] = {messages.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}

claims_router = APIRouter(tags=["claims"])


async def _claim_body(request: Request) -> bytes:
    """Read the body up to the limit. `BodyTooLarge`."""
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > messages.LARGEST_BODY_BYTES:
            raise BodyTooLarge(f"a request has at most {messages.LARGEST_BODY_BYTES} bytes")
    return bytes(found)


@claims_router.post(
    "/v1/claims",
    response_class=Response,
    responses={200: {"content": _CONTENT}},
    openapi_extra={"requestBody": {"required": True, "content": _CONTENT}},
)
def claim(context: Ingesting, body: Annotated[bytes, Depends(_claim_body)]) -> Response:
    """Claim a side effect for an attempt, report how an attempt ended, or renew claims.

    Of all attempts that claim the same key of a run family, one gets `ours`. Repeating a request with
    the same attempt returns the same answer.
    """
    try:
        message = messages.decode_message.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise UsageError("this is no claim", cause=str(problem)[:300]) from None
    answer = context.claims.answer(message)
    return Response(messages.encode(answer), media_type=messages.MEDIA_TYPE)
