"""Checkpoints that arrive as log records, a part of the encoded state in each.

Parts are stored as log records of their run, in any order and number of requests. The parts of a
checkpoint are joined when all of them are stored. Memory holds only which parts were seen, so a restart
loses nothing: the stored records of a run are read again when its next part arrives.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs

from playhead_checkpoint.store.protocol import Lineage
from playhead_checkpoint.store.wire import LARGEST_BODY_BYTES
from playhead_core.errors import (
    CheckpointUnknown,
    MalformedOtlp,
    PlayheadError,
    StoreUnavailable,
    UsageError,
)
from playhead_core.otlp.any_values import attributes_of
from playhead_core.otlp.log_records import LogQuery, time_of
from playhead_receiver.ingest.log_records import is_part
from playhead_receiver.ingest.spans import Rejections
from playhead_receiver.ingest.states import BYTES, JSON, MSGPACK, read_state
from playhead_receiver.storage.api.maintenance import SharedMaintenance, StoredCheckpoints
from playhead_receiver.storage.api.store import Store, needed, offered
from playhead_semconv import attributes as a
from playhead_semconv import events as e

MOST_PARTS: Final = 4096
"""Most parts of a checkpoint, which has at most `LARGEST_BODY_BYTES`."""
MOST_SEEN: Final = 4096
"""Most checkpoints, and most runs, that are held in memory. Others are read from the store again."""

_MEDIA_TYPES: Final = {"json": JSON, "msgpack": MSGPACK[0], "bytes": BYTES}
_NAME: Final = e.PLAYHEAD_CHECKPOINT_PART.encode()
_ID: Final = re.compile(r"[0-9a-f]{32}\Z")
_ID_OR_NONE: Final = re.compile(r"([0-9a-f]{32})?\Z")
_SHA256: Final = re.compile(r"[0-9a-f]{64}\Z")
_TEXT: Final = re.compile(r"(?s).{0,1024}\Z")


class _Key(msgspec.Struct, frozen=True):
    """What all parts of a checkpoint have in common."""

    run: bytes
    id: bytes
    sha256: str
    encoding: str
    count: int


class CheckpointPart(msgspec.Struct, frozen=True):
    """A part. The lineage of part 0 is that of the checkpoint."""

    key: _Key
    index: int
    time_ns: int
    lineage: Lineage
    body: bytes


def read_part(record: LogRecord) -> CheckpointPart:
    """Return the part in a log record. `MalformedOtlp` says what is wrong with it."""
    if not any(record.trace_id):
        raise MalformedOtlp("a part of a checkpoint has no trace id")
    found = attributes_of(record.attributes)
    id = bytes.fromhex(_text(found, a.PLAYHEAD_CHECKPOINT_ID, _ID, "32 hexadecimal digits"))
    sha256 = _text(found, a.PLAYHEAD_CHECKPOINT_SHA256, _SHA256, "64 hexadecimal digits")
    encoding = found.get(a.PLAYHEAD_CHECKPOINT_ENCODING)
    if not isinstance(encoding, str) or encoding not in _MEDIA_TYPES:
        raise MalformedOtlp(f"{a.PLAYHEAD_CHECKPOINT_ENCODING} is none of {', '.join(_MEDIA_TYPES)}")
    count = _number(found, a.PLAYHEAD_CHECKPOINT_PART_COUNT, 1, MOST_PARTS)
    index = _number(found, a.PLAYHEAD_CHECKPOINT_PART_INDEX, 0, count - 1)
    parent = _text(found, a.PLAYHEAD_CHECKPOINT_PARENT, _ID_OR_NONE, "32 hexadecimal digits")
    body = record.body
    if body.WhichOneof("value") not in ("string_value", "bytes_value"):
        raise MalformedOtlp("the body of a part of a checkpoint is neither a text nor bytes")
    lineage = Lineage(
        record.trace_id,
        record.span_id if any(record.span_id) else b"",
        "manual",
        bytes.fromhex(parent),
        time_of(record),
        _texts(found, a.PLAYHEAD_CHECKPOINT_LABEL),
        id,
        _text(found, a.PLAYHEAD_CHECKPOINT_THREAD, _TEXT, "a text of at most 1024 characters"),
        _text(found, a.PLAYHEAD_CHECKPOINT_NAME, _TEXT, "a text of at most 1024 characters"),
    )
    key = _Key(record.trace_id, id, sha256, encoding, count)
    return CheckpointPart(
        key, index, time_of(record), lineage, body.bytes_value or body.string_value.encode()
    )


def _text(found: Mapping[str, Any], key: str, wanted: re.Pattern[str], what: str) -> str:
    value = found.get(key, "")
    if not isinstance(value, str) or not wanted.match(value):
        raise MalformedOtlp(f"{key} is not {what}")
    return value


def _texts(found: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = found.get(key, [])
    try:
        return (value,) if isinstance(value, str) else msgspec.convert(value, tuple[str, ...])
    except msgspec.ValidationError:
        raise MalformedOtlp(f"{key} is neither a text nor texts") from None


def _number(found: Mapping[str, Any], key: str, least: int, most: int) -> int:
    value = found.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise MalformedOtlp(f"{key} is not a number from {least} to {most}")
    return value


@dataclass(slots=True)
class _Seen:
    """Which parts of a checkpoint were stored."""

    indexes: int = 0
    """A bit for each part."""
    first_ns: int = 1 << 63
    last_ns: int = 0
    is_checkpoint: bool = False
    """Whether they became a checkpoint."""

    def add(self, part: CheckpointPart) -> None:
        self.indexes |= 1 << part.index
        self.first_ns = min(self.first_ns, part.time_ns)
        self.last_ns = max(self.last_ns, part.time_ns)


class CheckpointParts:
    """Joins parts to checkpoints. Safe from any thread.

    Only one checkpoint is joined at a time, so that memory holds one state, however many are sent.
    """

    read = staticmethod(read_part)

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._is_shared = offered(store, SharedMaintenance) is not None
        """Whether other receivers may have stored parts that this one did not see."""
        self._seen: OrderedDict[_Key, _Seen] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()
        """Runs of which every stored part of an unfinished checkpoint is in ``_seen``."""

    def join(self, parts: Sequence[CheckpointPart], rejections: Rejections) -> tuple[int, int]:
        """Store the checkpoints that these parts, which are stored, complete. `StoreUnavailable`.

        Returns how many were stored, and how many were refused.
        """
        joined = refused = 0
        by_key: dict[_Key, dict[int, CheckpointPart]] = {}
        for part in parts:
            by_key.setdefault(part.key, {})[part.index] = part
        with self._lock:
            for key, sent in by_key.items():
                try:
                    joined += self._join(key, sent)
                except StoreUnavailable:  # the sender sends the request again
                    raise
                except PlayheadError as problem:
                    cause = f": {problem.cause}" if problem.cause else ""
                    what = f"checkpoint {key.id.hex()} is not stored: {problem.what}{cause}"
                    rejections.add(MalformedOtlp(what))
                    refused += 1
        return joined, refused

    def _join(self, key: _Key, sent: Mapping[int, CheckpointPart]) -> bool:
        """Store a checkpoint if all of its parts are there. Returns whether they are now."""
        if len(sent) == key.count:
            self._put(key, sent)
            return True
        seen = self._seen.pop(key, None) or _Seen()
        if seen.is_checkpoint and not self._exists(key.id):  # it was deleted
            seen = _Seen()
        try:
            if self._is_shared or key.run not in self._known:
                self._read(key, seen)
            for part in sent.values():
                seen.add(part)
            completes = seen.indexes.bit_count() == key.count and not seen.is_checkpoint
            if completes:
                try:
                    self._put(key, {**self._stored(key, seen), **sent})
                except StoreUnavailable:
                    raise
                except PlayheadError:  # all parts have to be sent again, or each would read all others
                    seen.indexes = 0
                    raise
                seen.is_checkpoint = True
            return completes
        finally:
            self._remember(key, seen)

    def _put(self, key: _Key, parts: Mapping[int, CheckpointPart]) -> None:
        if len(parts) < key.count:
            raise UsageError(
                f"{key.count - len(parts)} of its parts were deleted; send all of them again"
            )
        if sum(len(part.body) for part in parts.values()) > LARGEST_BODY_BYTES:
            raise UsageError(f"its parts have more than {LARGEST_BODY_BYTES} bytes")
        whole = b"".join(parts[index].body for index in range(key.count))
        digest = hashlib.sha256(whole).hexdigest()
        if digest != key.sha256:
            raise UsageError(f"the SHA-256 of its parts is {digest}, not {key.sha256}")
        state = read_state(whole, _MEDIA_TYPES[key.encoding])
        needed(self._store, StoredCheckpoints).checkpoints().put(state, parts[0].lineage)

    def _exists(self, id: bytes) -> bool:
        try:
            needed(self._store, StoredCheckpoints).checkpoints().checkpoint(id)
        except CheckpointUnknown:
            return False
        return True

    def _read(self, key: _Key, seen: _Seen) -> None:
        """See the stored parts of a run: those of ``key`` in ``seen``, of others in ``_seen``."""
        self._known[key.run] = None
        try:
            for part in self._stored_parts(key.run, 0):
                if part.key == key:
                    seen.add(part)
                elif not self._is_shared:
                    other = self._seen.pop(part.key, None) or _Seen()
                    other.add(part)
                    self._remember(part.key, other)
        except BaseException:
            self._known.pop(key.run, None)
            raise
        if len(self._known) > MOST_SEEN:
            self._known.popitem(last=False)

    def _remember(self, key: _Key, seen: _Seen) -> None:
        self._seen[key] = seen
        if len(self._seen) > MOST_SEEN:
            oldest, forgotten = self._seen.popitem(last=False)
            if not forgotten.is_checkpoint:
                self._known.pop(oldest.run, None)

    def _stored(self, key: _Key, seen: _Seen) -> dict[int, CheckpointPart]:
        """The stored parts of a checkpoint; of a part that was sent twice the later one."""
        found: dict[int, CheckpointPart] = {}
        size = 0
        for part in self._stored_parts(key.run, seen.first_ns):
            if part.time_ns > seen.last_ns:
                break
            if part.key == key:
                before = found.get(part.index)
                size += len(part.body) - (len(before.body) if before else 0)
                if size > LARGEST_BODY_BYTES:
                    raise UsageError(f"its parts have more than {LARGEST_BODY_BYTES} bytes")
                found[part.index] = part
        return found

    def _stored_parts(self, run: bytes, first_ns: int) -> Iterator[CheckpointPart]:
        for stored in self._store.logs(run, LogQuery(after=(first_ns - 1, b""))):
            if _NAME not in stored.otlp:
                continue
            record = ResourceLogs.FromString(stored.otlp).scope_logs[0].log_records[0]
            if is_part(record):
                try:
                    part = read_part(record)
                except MalformedOtlp:  # stored before parts were read, or with other limits
                    continue
                yield part
