"""Messages between a remote store and its receiver: MessagePack, treated as hostile."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypeVar

import msgspec

from playhead_checkpoint.store.engine import Notes, Packed, Put, Row
from playhead_checkpoint.store.rows import read_row, row_values
from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.nodes import Node, pack
from playhead_core.errors import CorruptTape

MEDIA_TYPE: Final = "application/octet-stream"
LARGEST_BODY_BYTES: Final = 1 << 26
"""Largest request or answer in bytes."""
LARGEST_ANSWER_BYTES: Final = 1 << 24
"""Bytes of nodes after which an answer ends; the rest is requested again."""
MOST_DIGESTS: Final = 500
_DIGEST_BYTES: Final = 32
_T = TypeVar("_T")

_Row = tuple[bytes, bytes, bytes, str, bytes, int, str, str, str, int, bytes, bytes]
_PUT: Final = msgspec.msgpack.Decoder(tuple[_Row, list[bytes], bool])
_NOTES: Final = msgspec.msgpack.Decoder(tuple[dict[str, bytes], list[bytes], bool])
_PACKED: Final = msgspec.msgpack.Decoder(tuple[_Row, dict[str, bytes]])
_ROW: Final = msgspec.msgpack.Decoder(_Row)
_PACKED_NOTES: Final = msgspec.msgpack.Decoder(dict[str, bytes])
_NODES: Final = msgspec.msgpack.Decoder(list[bytes])


def write_put(put: Put) -> bytes:
    """Encode a checkpoint and its nodes."""
    return pack((row_values(put.row), [node.data for node in put.fresh.values()], put.replace))


def read_put(data: bytes) -> Put:
    """Decode a put. `CorruptTape`, also if content differs from its digests."""
    row, fresh, replace = _decoded(_PUT, data)
    return Put(read_row(row), _verified(fresh), None, replace)


def write_notes(notes: Notes) -> bytes:
    """Encode notes and their nodes."""
    return pack((notes.packed, [node.data for node in notes.fresh.values()], notes.replace))


def read_notes(id: bytes, data: bytes) -> Notes:
    """Decode notes of the checkpoint with this id. `CorruptTape`."""
    packed, fresh, replace = _decoded(_NOTES, data)
    return Notes(id, packed, replace, _verified(fresh), None)


def write_row(row: Row) -> bytes:
    """Encode a row."""
    return pack(row_values(row))


def read_one_row(data: bytes) -> Row:
    """Decode a row. `CorruptTape`."""
    return read_row(_decoded(_ROW, data))


def write_packed(packed: Packed) -> bytes:
    """Encode a row and its packed notes."""
    return pack((row_values(packed.row), dict(packed.notes)))


def read_packed(data: bytes) -> Packed:
    """Decode a row and its packed notes. `CorruptTape`."""
    row, notes = _decoded(_PACKED, data)
    return Packed(read_row(row), notes)


def write_packed_notes(notes: Mapping[str, bytes]) -> bytes:
    """Encode packed notes."""
    return pack(dict(notes))


def read_packed_notes(data: bytes) -> Mapping[str, bytes]:
    """Decode packed notes. `CorruptTape`."""
    return _decoded(_PACKED_NOTES, data)


def write_digests(digests: Collection[bytes]) -> bytes:
    """Encode digests."""
    return b"".join(digests)


def read_digests(data: bytes) -> list[bytes]:
    """Decode at most `MOST_DIGESTS` digests. `CorruptTape`."""
    if not data or len(data) % _DIGEST_BYTES or len(data) > MOST_DIGESTS * _DIGEST_BYTES:
        raise CorruptTape(f"not at most {MOST_DIGESTS} digests of {_DIGEST_BYTES} bytes")
    return [data[at : at + _DIGEST_BYTES] for at in range(0, len(data), _DIGEST_BYTES)]


def write_nodes(found: Mapping[bytes, bytes]) -> bytes:
    """Encode as many nodes as fit into an answer."""
    some: list[bytes] = []
    left = LARGEST_ANSWER_BYTES
    for node in found.values():
        some.append(node)
        left -= len(node)
        if left < 0:
            break
    return pack(some)


def read_nodes(data: bytes) -> dict[bytes, bytes]:
    """Decode nodes, by digest. `CorruptTape`."""
    return {nodes.digest_of(node): node for node in _decoded(_NODES, data)}


def _decoded(decoder: msgspec.msgpack.Decoder[_T], data: bytes) -> _T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise CorruptTape("a message about checkpoints cannot be read", cause=str(problem)) from None


def _verified(fresh: list[bytes]) -> dict[bytes, Node]:
    """Return verified nodes by digest, children before parents."""
    found: dict[bytes, Node] = {}
    for node in fresh:
        digest = nodes.digest_of(node)
        found[digest] = nodes.opened(digest, node)
    return found
