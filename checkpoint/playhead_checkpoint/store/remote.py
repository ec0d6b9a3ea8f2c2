"""Checkpoints in a receiver."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from playhead_checkpoint.receiver_link import ReceiverLink, Refusal
from playhead_checkpoint.store import wire
from playhead_checkpoint.store.engine import (
    CheckpointEngine,
    KnownNodes,
    NodesGone,
    Notes,
    Packed,
    Put,
    Row,
)
from playhead_checkpoint.store.protocol import Checkpoint, CheckpointKind, Freed, Lineage
from playhead_checkpoint.store.rows import row_values
from playhead_checkpoint.tree.types import TYPES, Types
from playhead_core.errors import CheckpointUnknown, CorruptTape, StateRefused, UsageError

_JSON: Final = "application/json"
_PAGE: Final = 1000
_LONGEST_REASON: Final = 500


class _Described(msgspec.Struct):
    """A checkpoint as the receiver describes it."""

    id: str
    run: str
    span: str
    kind: CheckpointKind
    parent: str
    time_ns: int
    labels: tuple[str, ...]
    thread: str
    name: str
    size_bytes: int
    digest: str

    def checkpoint(self) -> Checkpoint:
        id, digest = bytes.fromhex(self.id), bytes.fromhex(self.digest)
        run, span, parent = map(bytes.fromhex, (self.run, self.span, self.parent))
        lineage = Lineage(
            run, span, self.kind, parent, self.time_ns, self.labels, id, self.thread, self.name
        )
        return Checkpoint(id, lineage, self.size_bytes, digest)


class _Page(msgspec.Struct):
    checkpoints: list[_Described]


class _Threads(msgspec.Struct):
    threads: list[str]


class _Freed(msgspec.Struct):
    checkpoints: int
    nodes: int
    stored_bytes: int


class _Damages(msgspec.Struct):
    damages: list[str]


class RemoteCheckpoints(CheckpointEngine):
    """A `CheckpointStore` of a receiver, over its query port.

    ``endpoint``: ``http://HOST:4319``. ``token``: reading needs the scope ``read``, putting ``ingest``,
    deleting ``control``, and `damages` ``admin``. ``timeout_s``: seconds for each request. One
    connection is kept, and opened again where it was closed. Only nodes that the receiver does not have
    are sent.
    """

    def __init__(
        self, endpoint: str, types: Types = TYPES, *, token: str = "", timeout_s: float = 30.0
    ) -> None:
        super().__init__(types)
        self._link = ReceiverLink(endpoint, token=token, timeout_s=timeout_s)

    def _ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = wire.MEDIA_TYPE
    ) -> bytes:
        """Send a request and return the answer; every request may be repeated."""
        answer = self._link.ask(method, path, body, kind)
        if isinstance(answer, Refusal):
            raise self._refused(answer)
        return answer

    def _refused(self, refusal: Refusal) -> Exception:
        if refusal.status == 409:
            return NodesGone()
        if refusal.status == 404 and refusal.kind == "urn:playhead:checkpoint-unknown":
            return CheckpointUnknown(refusal.reason)
        if refusal.status == 413:
            return StateRefused(refusal.reason)
        if refusal.status in (400, 422):
            return UsageError(refusal.reason)
        return self._link.refused(refusal)

    def _json(self, path: str, of: Any, method: str = "GET", body: Any = None) -> Any:
        sent = None if body is None else msgspec.json.encode(body)
        try:
            return msgspec.json.decode(self._ask(method, path, sent, _JSON), type=of)
        except (msgspec.MsgspecError, ValueError) as problem:
            raise self._link.unreadable(problem) from None

    # Methods of an engine

    def write(self, put: Put) -> Row:
        """Write a row and its nodes; see `CheckpointEngine.write`."""
        body = wire.write_put(put)
        if len(body) > wire.LARGEST_BODY_BYTES:
            raise StateRefused(f"a receiver takes at most {wire.LARGEST_BODY_BYTES} bytes at a time")
        stored = wire.read_one_row(
            self._written("PUT", f"checkpoints/{put.row.checkpoint.id.hex()}", body)
        )
        self._learn(put.known, put.fresh)
        same = row_values(stored) == row_values(put.row)
        return put.row if same else stored

    def write_notes(self, notes: Notes) -> None:
        """Write packed notes and their nodes; see `CheckpointEngine.write_notes`."""
        body = wire.write_notes(notes)
        if len(body) > wire.LARGEST_BODY_BYTES:
            raise StateRefused(f"a receiver takes at most {wire.LARGEST_BODY_BYTES} bytes at a time")
        self._written("PUT", f"checkpoints/{notes.id.hex()}/notes", body)

    def _written(self, method: str, path: str, body: bytes) -> bytes:
        try:
            return self._ask(method, path, body)
        except NodesGone:
            self._known = KnownNodes()
            raise

    def _learn(self, known: KnownNodes | None, fresh: Collection[bytes]) -> None:
        if known is not None and known is self._known:
            known.digests.update(fresh)

    @contextmanager
    def _reading(self) -> Generator[None, None, None]:
        """No-op: nodes that are deleted during the reads are missing."""
        yield

    def row(self, id: bytes) -> Row:
        """Return the row with an id. `CheckpointUnknown`."""
        return self.packed(id).row

    def packed(self, id: bytes) -> Packed:
        """Read a row and its packed notes. `CheckpointUnknown`."""
        found = wire.read_packed(self._ask("GET", f"checkpoints/{id.hex()}/packed"))
        if found.row.checkpoint.id != id:
            raise CorruptTape(f"the receiver at {self._link.name} answered with another checkpoint")
        return found

    def nodes(self, digests: Collection[bytes]) -> Mapping[bytes, bytes]:
        """Return the existing nodes by digest."""
        found: dict[bytes, bytes] = {}
        left: list[bytes] = list(digests)
        while left:
            some = left[: wire.MOST_DIGESTS]
            answer = wire.read_nodes(self._ask("POST", "checkpoint-nodes", wire.write_digests(some)))
            came = {digest: answer[digest] for digest in some if digest in answer}
            if not came:  # the others do not exist
                left = left[len(some) :]
                continue
            found |= came
            left = [digest for digest in left if digest not in found]
        return found

    def packed_notes(self, id: bytes) -> Mapping[str, bytes]:
        """Return the packed notes of a checkpoint, in the order in which they were added."""
        return wire.read_packed_notes(self._ask("GET", f"checkpoints/{id.hex()}/notes"))

    # Lists

    def checkpoint(self, id: bytes) -> Checkpoint:
        """Return the checkpoint with an id; see `CheckpointStore.checkpoint`."""
        return self._decoded(self._json(f"checkpoints/{id.hex()}", _Described))

    def latest(self, run: bytes) -> Checkpoint | None:
        """Return the checkpoint of a run that was stored last."""
        found = self.checkpoints(run, limit=1)
        return found[0] if found else None

    def checkpoints(
        self, run: bytes | None = None, *, before: bytes = b"", limit: int = 100
    ) -> list[Checkpoint]:
        """Return checkpoints, the newest first; see `CheckpointStore.checkpoints`."""
        found: list[Checkpoint] = []
        while len(found) < limit:
            count = min(limit - len(found), _PAGE)
            asked = {"limit": count, "before": before.hex()} | (
                {} if run is None else {"run": run.hex()}
            )
            page = self._page(asked)
            found += page
            if len(page) < count:
                break
            before = page[-1].id
        return found

    def of_thread(self, thread: str, *, before: str = "", limit: int | None = None) -> list[Checkpoint]:
        """Return checkpoints of a thread; see `CheckpointStore.of_thread`."""
        found: list[Checkpoint] = []
        while thread and (limit is None or len(found) < limit):
            count = _PAGE if limit is None else min(limit - len(found), _PAGE)
            page = self._page({"limit": count, "thread": thread, "before_name": before})
            found += page
            if len(page) < count:
                break
            before = page[-1].lineage.name
        return found

    def _page(self, query: Mapping[str, Any]) -> list[Checkpoint]:
        page: _Page = self._json(f"checkpoints?{urlencode(query)}", _Page)
        return [self._decoded(one) for one in page.checkpoints]

    def _decoded(self, described: _Described) -> Checkpoint:
        try:
            return described.checkpoint()
        except ValueError as problem:
            raise self._link.unreadable(problem) from None

    def threads(self, start: str = "") -> list[str]:
        """Return the threads whose names begin with ``start``, sorted."""
        found: list[str] = []
        while True:
            asked = urlencode({"start": start, "after": found[-1] if found else "", "limit": _PAGE})
            page: _Threads = self._json(f"checkpoint-threads?{asked}", _Threads)
            found += page.threads
            if len(page.threads) < _PAGE:
                return found

    def delete(self, ids: Sequence[bytes]) -> Freed:
        """Delete checkpoints and nodes that are no longer used. Unknown ids are ignored."""
        freed = Freed()
        for at in range(0, len(ids), _PAGE):
            one = self._deleted({"ids": [id.hex() for id in ids[at : at + _PAGE]]})
            freed = Freed(
                freed.checkpoints + one.checkpoints,
                freed.nodes + one.nodes,
                freed.stored_bytes + one.stored_bytes,
            )
        return freed

    def delete_run(self, run: bytes) -> Freed:
        """Delete the checkpoints of a run, as `delete`."""
        return self._deleted({"run": run.hex()})

    def _deleted(self, query: Mapping[str, Any]) -> Freed:
        found: _Freed = self._json("checkpoint-deletions", _Freed, "POST", query)
        return Freed(found.checkpoints, found.nodes, found.stored_bytes)

    def _damages(self) -> Generator[str, None, None]:
        found: _Damages = self._json("checkpoint-damages", _Damages)
        yield from found.damages

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._link.close()
