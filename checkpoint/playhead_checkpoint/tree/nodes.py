"""Nodes: the immutable pieces that stored states are made of.

A value is packed as MessagePack. A container, text or bytes value that is too large to be inline is
stored in nodes of its own; a `Ref` takes its place. A node is two bytes (kind, level) and a payload:

* level 0, a list or dict: some of its entries, a MessagePack array or map;
* level 0, text or bytes: a piece of its bytes;
* level 1 and above: for each child node its digest (32 bytes) and its length (4 bytes).

The name of a node is the BLAKE3 digest of all its bytes. So equal parts of states share a node.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

import msgspec
from blake3 import blake3

from playhead_core.errors import CorruptTape

INLINE_BYTES: Final = 1024
"""A container with larger entries than this is stored in nodes of its own."""
WHOLE_BYTES: Final = 4096
"""Longest inline text or bytes value, and largest container that is a single node."""
LEAF_BYTES: Final = 2048
"""Mean size of the leaves of a large container."""
LARGEST_LEAF_BYTES: Final = 8192
"""Size at which a leaf ends regardless of content."""
BLOCK_LEAVES: Final = 8
"""Mean number of leaves that a growing list joins into a block."""
LARGEST_BLOCK_BYTES: Final = 65536
PIECE_BYTES: Final = 16384
"""Length of the pieces of a long text or bytes value."""
FAN_OUT: Final = 16
"""Mean number of children of an index node."""
LARGEST_FAN_OUT: Final = 64
MOST_LEVELS: Final = 32
MOST_DEPTH: Final = 100
"""Deepest nesting of containers and typed values."""
LARGEST_NODE_BYTES: Final = 1 << 17

REF: Final = 1
TYPED: Final = 2
OPEN: Final = 3
"""Codes of the MessagePack extensions: a `Ref`; a typed value, ``[name, parts]``; a growing list."""

LIST, DICT, TEXT, BYTES = b"ldsb"
_KINDS: Final = frozenset(b"ldsb")
_REF: Final = struct.Struct(">BBI32s")
_BELOW: Final = struct.Struct(">32sI")
_LIST_MARK: Final = b"list"
_OPEN_HEAD: Final = bytes((OPEN,)) + _LIST_MARK
"""Marker in every value that holds an open list; it is fast to search for."""
_REF_HEAD: Final = bytes((0xC7, _REF.size, REF))
_LONG_EXTENSIONS: Final = (0xC7, 0xC8, 0xC9)
"""First bytes of the extensions that refer to nodes; a search for one byte is ten times faster."""
UNPACKABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, ValueError)

pack: Final = msgspec.msgpack.Encoder().encode
type_of: Final[Callable[[Any], type[Any]]] = type


class Ref(NamedTuple):
    """Reference to a container, text or bytes in nodes of its own. Equal references mean equal values.

    ``length``: entries of a list or dict, bytes of a text or of bytes.
    """

    kind: int
    level: int
    length: int
    digest: bytes

    def data(self) -> bytes:
        """Return the payload of the extension."""
        return _REF.pack(*self)

    def packed(self) -> bytes:
        """Return the reference as packed inside a value."""
        return _REF_HEAD + _REF.pack(*self)


def damaged(why: str) -> CorruptTape:
    """Return the error for stored data that no store has written."""
    return CorruptTape("a stored state is damaged", cause=why)


def digest_of(node: bytes) -> bytes:
    """Return the digest of a node, 32 bytes, which is its name."""
    return blake3(node).digest()


def leaf(kind: int, payload: bytes) -> bytes:
    """Make a node of level 0."""
    return bytes((kind, 0)) + payload


def index(refs: list[Ref]) -> tuple[bytes, int]:
    """Make the index node above ``refs``, all of one kind and level; return it and its length."""
    kind, level = refs[0].kind, refs[0].level + 1
    below = b"".join(_BELOW.pack(ref.digest, ref.length) for ref in refs)
    return bytes((kind, level)) + below, sum(ref.length for ref in refs)


def unpacked_ref(data: bytes | memoryview) -> Ref:
    """Decode the reference in an extension. `CorruptTape` if it is not one."""
    if len(data) != _REF.size:
        raise damaged(f"a reference of {len(data)} bytes")
    ref = Ref(*_REF.unpack(data))
    if ref.kind not in _KINDS or ref.level > MOST_LEVELS:
        raise damaged(f"a reference of kind {ref.kind}, level {ref.level}")
    return ref


class Node(NamedTuple):
    """A node that was verified.

    ``length``: as of a `Ref`. ``payload``: what a leaf holds. ``below``: the refs in it. ``data``: all.
    """

    kind: int
    level: int
    length: int
    payload: memoryview
    below: tuple[Ref, ...]
    data: bytes


def opened(digest: bytes, node: bytes) -> Node:
    """The node of a digest. `CorruptTape`: it is another one, or not what a store writes."""
    return parsed(checked(digest, node))


def parsed(node: bytes) -> Node:
    """The parts of a node that this process made, or verified. `CorruptTape`: as `opened`."""
    if len(node) < 2 or node[0] not in _KINDS:
        raise damaged("a node without a kind")
    kind, level = node[0], node[1]
    payload = memoryview(node)[2:]
    if level:
        if not payload or len(payload) % _BELOW.size:
            raise damaged(f"a node with {len(payload)} bytes of digests")
        below = tuple(Ref(kind, level - 1, count, one) for one, count in _BELOW.iter_unpack(payload))
        return Node(kind, level, sum(one.length for one in below), payload, below, node)
    if kind in (LIST, DICT):
        return Node(kind, 0, _count(kind, payload), payload, tuple(refs_in(node[2:])), node)
    return Node(kind, 0, len(payload), payload, (), node)


def _count(kind: int, payload: bytes | memoryview) -> int:
    """How many entries a packed list or dict has; -1: it is none."""
    small, middle, large = (0x90, 0xDC, 0xDD) if kind == LIST else (0x80, 0xDE, 0xDF)
    first = payload[0] if payload else 0
    if first & 0xF0 == small:
        return first & 0x0F
    if first not in (middle, large):
        return -1
    return int.from_bytes(payload[1 : 3 if first == middle else 5], "big")


def of(ref: Ref, node: Node) -> Node:
    """The node, when a ref may stand for it. `CorruptTape`: it is of another kind or length."""
    if node[:3] != ref[:3]:
        raise damaged(f"node {ref.digest.hex()[:16]} is not what refers to it")
    return node


def checked(digest: bytes, node: bytes) -> bytes:
    """The node, when it is that of the digest. `CorruptTape`: it is another one, or too large."""
    if len(node) > LARGEST_NODE_BYTES:
        raise damaged(f"node {digest.hex()[:16]} has {len(node)} bytes")
    if digest_of(node) != digest:
        raise damaged(f"node {digest.hex()[:16]} differs from its digest")
    return node


def unpack(data: bytes | memoryview, extension: Any) -> Any:
    """Unpack a value; ``extension(code, data)`` makes the value of an extension.

    `CorruptTape` if it is not MessagePack, or nested too deep.
    """
    try:
        return msgspec.msgpack.decode(data, ext_hook=extension)
    except UNPACKABLE as problem:
        raise damaged(f"{type(problem).__name__}: {problem}") from None


def named(value: Any) -> tuple[str, Any]:
    """Return name and parts of an unpacked typed value. `CorruptTape` if it is not one."""
    if type_of(value) is list:
        pair = cast(list[Any], value)
        if len(pair) == 2 and type_of(pair[0]) is str:
            return pair[0], pair[1]
    raise damaged("a typed value without a name")


def open_list(refs: Sequence[Ref]) -> bytes:
    """Return the start of the extension for a list: references to closed nodes. A packed list of the
    entries that are not in a node yet follows."""
    return _LIST_MARK + bytes((len(refs),)) + b"".join(_REF.pack(*ref) for ref in refs)


def opened_list(data: bytes | memoryview) -> tuple[tuple[Ref, ...], bytes]:
    """Return references and tail of an open list. `CorruptTape` if it is not one."""
    raw = bytes(data)
    begin = len(_LIST_MARK) + 1
    if len(raw) < begin or not raw.startswith(_LIST_MARK):
        raise damaged("an open list without a mark")
    end = begin + raw[begin - 1] * _REF.size
    if end >= len(raw):
        raise damaged("an open list without parts")
    tail = raw[end:]
    if _count(LIST, tail) < 0:
        raise damaged("an open list of something else")
    return _refs(raw[begin:end]), tail


@lru_cache(maxsize=256)
def _refs(data: bytes) -> tuple[Ref, ...]:
    """Decode the references of an open list. `CorruptTape` if they do not refer to lists."""
    refs = tuple(Ref(*one) for one in _REF.iter_unpack(data))
    if any(ref.kind != LIST or ref.level > MOST_LEVELS for ref in refs):
        raise damaged("an open list of something else")
    return refs


def refs_in(data: bytes) -> list[Ref]:
    """Return all references in a packed value, with repeats. `CorruptTape`: as `unpack`."""
    found: list[Ref] = []

    def extension(code: int, data: memoryview) -> None:
        if code == REF:
            found.append(unpacked_ref(data))
        elif code == TYPED:
            unpack(data, extension)
        elif code == OPEN:
            refs, tail = opened_list(data)
            found.extend(refs)
            found.extend(refs_in(tail))
        else:
            raise damaged(f"an extension {code}")

    if any(map(data.__contains__, _LONG_EXTENSIONS)) and (_REF_HEAD in data or _OPEN_HEAD in data):
        unpack(data, extension)  # otherwise there are no references
    return found
