"""``/v1/checkpoints``: states by content, for `RemoteCheckpoints` and for who looks at them.

Nodes, packed states and notes are MessagePack, in the words of `playhead_checkpoint.store.wire`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from playhead_checkpoint.store import wire
from playhead_checkpoint.store.engine import NodesGone
from playhead_checkpoint.store.protocol import Checkpoint
from playhead_core.errors import CorruptTape, PlayheadError, UsageError
from playhead_receiver.api.asked import Administrating, Controlling, Ingesting, Limit, Reading
from playhead_receiver.api.models.checkpoints import (
    CheckpointDeletion,
    CheckpointPage,
    Damages,
    FreedSpace,
    StoredCheckpoint,
    ThreadPage,
)
from playhead_receiver.api.problems import BodyTooLarge, NodesMissing

PACKED: dict[int | str, Any] = {
    200: {"content": {wire.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}}
}
_SENT = {"requestBody": {"required": True, "content": PACKED[200]["content"]}}

router = APIRouter(tags=["checkpoints"])

Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="Id of the checkpoint.")]
OrId = Annotated[str, Query(pattern="^([0-9a-f]{32})?$")]
Text = Annotated[str, Query(max_length=1024)]


async def _body(request: Request) -> bytes:
    """The body, as far as it is taken. `BodyTooLarge`."""
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > wire.LARGEST_BODY_BYTES:
            raise BodyTooLarge(f"a request has at most {wire.LARGEST_BODY_BYTES} bytes")
    return bytes(found)


Body = Annotated[bytes, Depends(_body)]


@contextmanager
def _taking() -> Generator[None, None, None]:
    """What is wrong with what was sent, as the sender's mistake."""
    try:
        yield
    except CorruptTape as problem:
        raise UsageError(problem.what, cause=problem.cause) from None


@contextmanager
def _keeping() -> Generator[None, None, None]:
    try:
        yield
    except NodesGone:
        raise NodesMissing("not all nodes of it are stored, or were sent") from None


def _shown(found: Checkpoint) -> StoredCheckpoint:
    lineage = found.lineage
    return StoredCheckpoint(
        id=found.id.hex(),
        run=lineage.run.hex(),
        span=lineage.span.hex(),
        kind=lineage.kind,
        parent=lineage.parent.hex(),
        time_ns=lineage.time_ns,
        labels=list(lineage.labels),
        thread=lineage.thread,
        name=lineage.name,
        size_bytes=found.size_bytes,
        digest=found.digest.hex(),
    )


@router.get("/v1/checkpoints")
def list_checkpoints(
    asked: Reading,
    limit: Limit = 100,
    run: OrId = "",
    before: OrId = "",
    thread: Text = "",
    before_name: Text = "",
) -> CheckpointPage:
    """List checkpoints, newest first; optionally of a ``run``, or older than ``before``.

    With ``thread``: those of a framework's thread, by descending name, before ``before_name``.
    """
    store = asked.checkpoints
    if thread:
        found = store.of_thread(thread, before=before_name, limit=limit)
    else:
        wanted = bytes.fromhex(run) if run else None
        found = store.checkpoints(wanted, before=bytes.fromhex(before), limit=limit)
    asked.note("read", "checkpoints")
    return CheckpointPage(checkpoints=[_shown(one) for one in found])


@router.get("/v1/checkpoint-threads")
def list_threads(asked: Reading, limit: Limit = 100, start: Text = "", after: Text = "") -> ThreadPage:
    """List threads whose names start with ``start``, after ``after``."""
    names = (name for name in asked.checkpoints.threads(start) if name > after)
    found = list(islice(names, limit))
    asked.note("read", "threads")
    return ThreadPage(threads=found)


@router.get("/v1/checkpoint-damages")
def verify(asked: Administrating) -> Damages:
    """Verify all checkpoints of the tenant, and list what is damaged or missing."""
    found = asked.checkpoints.damages()
    asked.note("read", "checkpoints")
    return Damages(damages=found)


@router.post("/v1/checkpoint-nodes", response_class=Response, responses=PACKED, openapi_extra=_SENT)
def nodes(asked: Reading, body: Body) -> Response:
    """Get nodes by digest (sent concatenated): those that exist, as many as fit."""
    with _taking():
        wanted = wire.read_digests(body)
    found = asked.checkpoints.nodes(wanted)
    asked.note("read", "checkpoints")
    return _packed(wire.write_nodes(found))


@router.post("/v1/checkpoint-deletions")
def delete(asked: Controlling, what: CheckpointDeletion) -> FreedSpace:
    """Delete checkpoints, their notes, and nodes that nothing else uses."""
    store = asked.checkpoints
    freed = store.delete([bytes.fromhex(id) for id in what.ids])
    if what.run:
        freed = store.delete_run(bytes.fromhex(what.run))
    asked.note("delete", f"checkpoints {what.run}".rstrip())
    return FreedSpace(checkpoints=freed.checkpoints, nodes=freed.nodes, stored_bytes=freed.stored_bytes)


@router.get("/v1/checkpoints/{id}")
def get_checkpoint(asked: Reading, id: Id) -> StoredCheckpoint:
    """A checkpoint without its state."""
    found = asked.checkpoints.checkpoint(bytes.fromhex(id))
    asked.note("read", f"checkpoint {id}")
    return _shown(found)


@router.get("/v1/checkpoints/{id}/packed", response_class=Response, responses=PACKED)
def get_packed(asked: Reading, id: Id) -> Response:
    """Get a checkpoint with its packed state, which refers to nodes, and its packed notes."""
    found = asked.checkpoints.packed(bytes.fromhex(id))
    asked.note("read", f"checkpoint {id}")
    return _packed(wire.write_packed(found))


@router.get("/v1/checkpoints/{id}/notes", response_class=Response, responses=PACKED)
def get_notes(asked: Reading, id: Id) -> Response:
    """Get the packed notes of a checkpoint; they may exist before the checkpoint."""
    found = asked.checkpoints.packed_notes(bytes.fromhex(id))
    asked.note("read", f"checkpoint {id}")
    return _packed(wire.write_packed_notes(found))


@router.put("/v1/checkpoints/{id}", response_class=Response, responses=PACKED, openapi_extra=_SENT)
def put_checkpoint(asked: Ingesting, id: Id, body: Body) -> Response:
    """Store a checkpoint and its nodes. Returns the stored one: an existing checkpoint of that id wins.

    409: it refers to nodes that are neither stored nor in the request.
    """
    try:
        with _taking():
            put = wire.read_put(body)
            if put.row.checkpoint.id != bytes.fromhex(id):
                raise UsageError("it has another id")
        with _keeping():
            stored = asked.checkpoints.write(put)
    except NodesMissing:  # they come with the next request
        raise
    except PlayheadError:
        asked.tallies.refused()
        raise
    asked.tallies.put(put, stored)
    return _packed(wire.write_row(stored))


@router.put("/v1/checkpoints/{id}/notes", response_class=Response, responses=PACKED, openapi_extra=_SENT)
def put_notes(asked: Ingesting, id: Id, body: Body) -> Response:
    """Add notes to a checkpoint, which may be stored later. 409 as for a checkpoint."""
    with _taking():
        notes = wire.read_notes(bytes.fromhex(id), body)
    with _keeping():
        asked.checkpoints.write_notes(notes)
    return _packed(wire.write_packed_notes({}))


def _packed(data: bytes) -> Response:
    return Response(data, media_type=wire.MEDIA_TYPE)
