"""Checkpoints that a receiver keeps."""

from __future__ import annotations

import http.client
import os
import ssl
import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

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
from playhead_checkpoint.values.types import TYPES, Types
from playhead_semconv.errors import (
    CheckpointUnknown,
    CorruptTape,
    StateRefused,
    StoreUnavailable,
    UsageError,
)

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


class _Problem(msgspec.Struct):
    type: str = ""
    detail: str = ""
    hint: str = ""


class RemoteCheckpoints(CheckpointEngine):
    """A `CheckpointStore` of a receiver, over its query port.

    ``endpoint``: ``http://HOST:4319``. ``token``: reading needs the scope ``read``, putting ``ingest``,
    deleting ``control``, and `damages` ``admin``. ``timeout_s``: seconds for each request. One
    connection is kept, and opened anew where it was closed. Only nodes that the receiver does not have
    are sent.
    """

    def __init__(
        self, endpoint: str, types: Types = TYPES, *, token: str = "", timeout_s: float = 30.0
    ) -> None:
        super().__init__(types)
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{endpoint!r:.200} is no address of a receiver", hint="http://HOST:4319")
        self._name = f"{parts.scheme}://{parts.hostname}:{parts.port or ''}".rstrip(":")
        self._base = parts.path.rstrip("/")
        self._secure = parts.scheme == "https"
        self._address = parts.hostname, parts.port
        self._timeout_s = timeout_s
        self._headers = {"User-Agent": "playhead"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._lock = threading.RLock()
        self._open: http.client.HTTPConnection | None = None
        self._pid = os.getpid()
        self._closed = False

    # Asking

    def _connection(self) -> http.client.HTTPConnection:
        if self._closed:
            raise StoreUnavailable(f"the store at {self._name} is closed")
        if self._open is None or self._pid != os.getpid():
            host, port = self._address
            self._pid = os.getpid()
            if self._secure:
                context = ssl.create_default_context()
                self._open = http.client.HTTPSConnection(
                    host, port, timeout=self._timeout_s, context=context
                )
            else:
                self._open = http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        return self._open

    def _ask(
        self, method: str, path: str, body: bytes | None = None, kind: str = wire.MEDIA_TYPE
    ) -> bytes:
        """The answer to a request; all of them may be made twice."""
        headers = self._headers if body is None else self._headers | {"Content-Type": kind}
        with self._lock:
            try:
                status, data = self._once(method, path, body, headers)
            except TimeoutError as problem:
                raise self._unreached(problem) from None
            except (OSError, http.client.HTTPException):  # a connection that was kept may be closed
                try:
                    status, data = self._once(method, path, body, headers)
                except (OSError, http.client.HTTPException) as problem:
                    raise self._unreached(problem) from None
        if len(data) > wire.LARGEST_BODY_BYTES:
            raise CorruptTape(f"an answer of the receiver at {self._name} is too large")
        if status != 200:
            raise self._refusal(status, data)
        return data

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Status and body of one answer; a connection on which something went wrong is let go."""
        whole = False
        try:
            connection = self._connection()
            connection.request(method, f"{self._base}/v1/{path}", body, headers)
            answer = connection.getresponse()
            data = answer.read(wire.LARGEST_BODY_BYTES + 1)
            whole = len(data) <= wire.LARGEST_BODY_BYTES
            return answer.status, data
        finally:
            if not whole:
                self._let_go()

    def _unreached(self, problem: Exception) -> StoreUnavailable:
        cause = f"{type(problem).__name__}: {problem}"
        return StoreUnavailable(f"the receiver at {self._name} cannot be reached", cause=cause)

    def _let_go(self) -> None:
        if self._open is not None and self._pid == os.getpid():
            self._open.close()
        self._open = None

    def _refusal(self, status: int, data: bytes) -> Exception:
        try:
            said = msgspec.json.decode(data, type=_Problem)
        except (msgspec.MsgspecError, ValueError):
            said = _Problem()
        detail = "".join(sign if sign.isprintable() else "�" for sign in said.detail)
        reason = detail[:_LONGEST_REASON] or f"it answered {status}"
        if status == 409:
            return NodesGone()
        if status == 404 and said.type == "urn:playhead:checkpoint-unknown":
            return CheckpointUnknown(reason)
        if status == 413:
            return StateRefused(reason)
        if status in (400, 422):
            return UsageError(reason)
        hint = "set a token with the scope that is missing" if status in (401, 403) else ""
        return StoreUnavailable(f"the receiver at {self._name} refuses", cause=reason, hint=hint)

    def _json(self, path: str, of: Any, method: str = "GET", body: Any = None) -> Any:
        sent = None if body is None else msgspec.json.encode(body)
        try:
            return msgspec.json.decode(self._ask(method, path, sent, _JSON), type=of)
        except (msgspec.MsgspecError, ValueError) as problem:
            raise self._unreadable(problem) from None

    def _unreadable(self, problem: Exception) -> CorruptTape:
        return CorruptTape(f"the receiver at {self._name} answered something else", cause=str(problem))

    # What an engine does

    def write(self, put: Put) -> Row:
        """Keep a row and its nodes; see `CheckpointEngine.write`."""
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
        """Keep packed notes and their nodes; see `CheckpointEngine.write_notes`."""
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
            known.ids.update(dict.fromkeys(fresh, 0))

    @contextmanager
    def _reading(self) -> Generator[None, None, None]:
        """Nothing is held: what was deleted meanwhile is missing then."""
        yield

    def row(self, id: bytes) -> Row:
        """The row of an id. `CheckpointUnknown`."""
        return self.packed(id).row

    def packed(self, id: bytes) -> Packed:
        """Read the packed state of an id. `CheckpointUnknown`."""
        found = wire.read_packed(self._ask("GET", f"checkpoints/{id.hex()}/packed"))
        if found.row.checkpoint.id != id:
            raise CorruptTape(f"the receiver at {self._name} answered with another checkpoint")
        return found

    def nodes(self, digests: Collection[bytes]) -> Mapping[bytes, bytes]:
        """Nodes by digest, those that are there."""
        found: dict[bytes, bytes] = {}
        left: list[bytes] = list(digests)
        while left:
            some = left[: wire.MOST_DIGESTS]
            told = wire.read_nodes(self._ask("POST", "checkpoint-nodes", wire.write_digests(some)))
            came = {digest: told[digest] for digest in some if digest in told}
            if not came:  # the others of these are not there
                left = left[len(some) :]
                continue
            found |= came
            left = [digest for digest in left if digest not in found]
        return found

    def packed_notes(self, id: bytes) -> Mapping[str, bytes]:
        """The notes of a checkpoint, packed, in the order in which they came."""
        return wire.read_said(self._ask("GET", f"checkpoints/{id.hex()}/notes"))

    # Lists

    def checkpoint(self, id: bytes) -> Checkpoint:
        """The checkpoint of an id; see `CheckpointStore.checkpoint`."""
        return self._told(self._json(f"checkpoints/{id.hex()}", _Described))

    def latest(self, run: bytes) -> Checkpoint | None:
        """The checkpoint of a run that was put last."""
        found = self.checkpoints(run, limit=1)
        return found[0] if found else None

    def checkpoints(
        self, run: bytes | None = None, *, before: bytes = b"", limit: int = 100
    ) -> list[Checkpoint]:
        """Checkpoints, those put last first; see `CheckpointStore.checkpoints`."""
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
        """Checkpoints of a thread; see `CheckpointStore.of_thread`."""
        found: list[Checkpoint] = []
        while thread and (limit is None or len(found) < limit):
            count = _PAGE if limit is None else min(limit - len(found), _PAGE)
            page = self._page({"limit": count, "thread": thread, "before_name": before})
            found += page
            if len(page) < count:
                break
            before = page[-1].lineage.name
        return found

    def _page(self, asked: Mapping[str, Any]) -> list[Checkpoint]:
        page: _Page = self._json(f"checkpoints?{urlencode(asked)}", _Page)
        return [self._told(one) for one in page.checkpoints]

    def _told(self, described: _Described) -> Checkpoint:
        try:
            return described.checkpoint()
        except ValueError as problem:
            raise self._unreadable(problem) from None

    def threads(self, start: str = "") -> list[str]:
        """The threads whose names start so, in order."""
        found: list[str] = []
        while True:
            asked = urlencode({"start": start, "after": found[-1] if found else "", "limit": _PAGE})
            page: _Threads = self._json(f"checkpoint-threads?{asked}", _Threads)
            found += page.threads
            if len(page.threads) < _PAGE:
                return found

    def delete(self, ids: Sequence[bytes]) -> Freed:
        """Delete checkpoints, and what nothing else uses. Unknown ids are passed over."""
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

    def _deleted(self, asked: Mapping[str, Any]) -> Freed:
        found: _Freed = self._json("checkpoint-deletions", _Freed, "POST", asked)
        return Freed(found.checkpoints, found.nodes, found.stored_bytes)

    def _damages(self) -> Generator[str, None, None]:
        found: _Damages = self._json("checkpoint-damages", _Damages)
        yield from found.damages

    def close(self) -> None:
        """Close the connection. Nothing happens when it is closed."""
        with self._lock:
            self._let_go()
            self._closed = True
