"""From a value to nodes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import Any, Final, cast
from zlib import crc32

import msgspec

from playhead_checkpoint.values import nodes
from playhead_checkpoint.values.nodes import BYTES, DICT, LIST, TEXT, Ref, pack, type_of
from playhead_checkpoint.values.standard_types import STANDARD, TypeShape, Unsorted
from playhead_checkpoint.values.types import Types
from playhead_semconv.errors import StateRefused

_SCALARS: Final = frozenset({type(None), bool, int, float})
_PLAIN: Final = _SCALARS | {str, bytes, dict, list}
_HEAD_BYTES: Final = 5
_VALUES_OF: Final = cast(Callable[[Any], Any], dict.values)
_LEVELS: Final = 4
"""How deep the entries of a list may be nested to be packed many at once."""
_CUT: Final = (1 << 32) // nodes.LEAF_BYTES


def _small(value: Any, room: int, levels: int) -> int:
    """Return how many bytes of ``room`` a list or dict of plain JSON values leaves.

    Below 0: it has other values, takes more, or is nested deeper than ``levels``.
    """
    if not levels:
        return -1
    room -= len(value)
    kind = type_of(value)
    if kind is dict:
        for key in value:
            if type(key) is not str:
                return -1
            room -= len(key)
        value = value.values()
    for one in value:
        if room < 0:
            return -1
        kind = type_of(one)
        if kind is str or kind is bytes:
            room -= len(one)
        elif kind is list or kind is dict:
            room = _small(one, room, levels - 1)
        elif kind not in _SCALARS:
            return -1
    return room


def _plain(values: Collection[Any]) -> bool:
    """Whether these and what stands in them are plain JSON values or bytes, and not nested deep."""
    for _ in range(_LEVELS):
        kinds = set(map(type_of, values))
        if not kinds <= _PLAIN:
            return False
        if dict not in kinds and list not in kinds:
            return True
        dicts = (
            values
            if len(kinds) == 1 and dict in kinds
            else [one for one in values if type_of(one) is dict]
        )
        lists = [one for one in values if type_of(one) is list] if list in kinds else ()
        if not set(map(type_of, chain.from_iterable(dicts))) <= {str}:
            return False
        values = [*chain.from_iterable(map(_VALUES_OF, dicts)), *chain.from_iterable(lists)]
    return False


class Packer:
    """Packs values; each node goes to ``keep(digest, node)``, those below before those above.

    The nodes of a value depend on the value alone. Where the entries of a large container are cut
    depends on the entries themselves: after a change the nodes before and behind it are the same.
    """

    def __init__(self, types: Types, keep: Callable[[bytes, bytes], None]) -> None:
        self._types = types
        self._keep = keep
        self._depth = 0
        self.logical_bytes = 0

    def state(self, state: Any) -> bytes:
        """The packed state. `StateRefused` names the path and type of what cannot be stored."""
        try:
            return self.value(state)
        except StateRefused as refused:
            keys = "".join(f"[{_spelt(key)}]" for key in refused.path)
            refused.what = f"state{keys}: {refused.what}"
            raise

    def value(self, value: Any) -> bytes:
        """The packed value. `StateRefused` has the path in it."""
        kind = type_of(value)
        if kind is dict or kind is list:
            if _small(value, nodes.INLINE_BYTES, nodes.MOST_DEPTH - self._depth) >= 0:
                try:
                    data = pack(value)
                    if len(data) <= nodes.INLINE_BYTES:
                        self.logical_bytes += len(data)
                        return data
                except (OverflowError, UnicodeEncodeError):
                    pass
            return self._deeper(self._list if kind is list else self._dict, value)
        if kind is str or kind is bytes:
            return self._text(value)
        if kind in _SCALARS:
            return self._scalar(value)
        shape = self._types.shape_of(value)
        if shape is None:
            raise StateRefused(
                f"a value of type {kind.__module__}.{kind.__qualname__} cannot be stored",
                hint="register its type with playhead_checkpoint.register, or leave it out of the state",
            )
        return self._deeper(self._typed, value, shape)

    def _deeper(self, way: Callable[..., bytes], *value: Any) -> bytes:
        if self._depth >= nodes.MOST_DEPTH:
            raise StateRefused(
                f"the state is nested deeper than {nodes.MOST_DEPTH} levels, or contains itself"
            )
        self._depth += 1
        try:
            return way(*value)
        finally:
            self._depth -= 1

    def _at(self, key: object, value: Any) -> bytes:
        """A value below a key; an error gets the key in front of its path."""
        try:
            return self.value(value)
        except StateRefused as refused:
            raise refused.below(key) from None

    def _list(self, value: list[Any]) -> bytes:
        return self._container(LIST, self._plain_entries(value) or self._entries(value))

    def _plain_entries(self, values: list[Any]) -> list[bytes] | None:
        """As `_entries`, many at once; None where some are no plain JSON values."""
        if self._depth + _LEVELS > nodes.MOST_DEPTH or not _plain(values):
            return None
        try:
            entries = list(map(pack, values))
        except (OverflowError, UnicodeEncodeError):
            return None
        for at, entry in enumerate(entries):
            if len(entry) > nodes.INLINE_BYTES:
                entries[at] = self.value(values[at])
            else:
                self.logical_bytes += len(entry)
        return entries

    def _entries(self, value: list[Any]) -> list[bytes]:
        entries: list[bytes] = []
        try:
            for one in value:
                entries.append(self.value(one))
        except StateRefused as refused:
            raise refused.below(len(entries)) from None
        return entries

    def _dict(self, value: dict[Any, Any]) -> bytes:
        entries: list[bytes] = []
        for key, one in value.items():
            if type(key) is not str or len(key) > nodes.INLINE_BYTES or not _utf8(key):
                return self._pairs(value)
            name = pack(key)
            self.logical_bytes += len(name)
            entries.append(name + self._at(key, one))
        return self._container(DICT, entries)

    def _pairs(self, value: dict[Any, Any]) -> bytes:
        """A dict with other keys than texts: keys and values in turn."""
        entries: list[bytes] = []
        for key, one in value.items():
            entries += (self._at(key, key), self._at(key, one))
        return _typed(STANDARD[dict].name, self._container(LIST, entries))

    def _typed(self, value: Any, shape: TypeShape) -> bytes:
        self.logical_bytes += _HEAD_BYTES + len(shape.name)
        try:
            parts = shape.apart(value)
        except Exception as problem:  # whatever the type of the program says
            raise StateRefused(
                f"a value of type {type(value).__module__}.{type(value).__qualname__} cannot be stored",
                cause=f"{type(problem).__name__}: {problem}",
            ) from problem
        if isinstance(parts, Unsorted):
            data = self._container(LIST, sorted(map(self.value, parts)))
        else:
            data = self.value(parts)
        return _typed(shape.name, data)

    def _scalar(self, value: Any) -> bytes:
        try:
            data = pack(value)
        except OverflowError:
            return self._typed(value, STANDARD[int])
        self.logical_bytes += len(data)
        return data

    def _text(self, value: str | bytes) -> bytes:
        try:
            data = value.encode() if isinstance(value, str) else value
        except UnicodeEncodeError:
            return self._typed(value, STANDARD[str])
        self.logical_bytes += len(data)
        if len(data) <= nodes.WHOLE_BYTES:
            return pack(value)
        kind, size = TEXT if isinstance(value, str) else BYTES, nodes.PIECE_BYTES
        pieces = (data[at : at + size] for at in range(0, len(data), size))
        return self._tree([self._kept(kind, piece, len(piece)) for piece in pieces])

    def _container(self, kind: int, entries: Sequence[bytes]) -> bytes:
        size = sum(map(len, entries))
        self.logical_bytes += _HEAD_BYTES
        if size <= nodes.INLINE_BYTES:
            return _head(kind, len(entries)) + b"".join(entries)
        if size <= nodes.WHOLE_BYTES:
            return self._tree([self._leaf(kind, entries)])
        return self._tree([self._leaf(kind, some) for some in _cut(entries, blocks=kind == LIST)])

    def _leaf(self, kind: int, entries: Sequence[bytes]) -> Ref:
        return self._kept(kind, _head(kind, len(entries)) + b"".join(entries), len(entries))

    def _kept(self, kind: int, payload: bytes, count: int) -> Ref:
        node = nodes.leaf(kind, payload)
        digest = nodes.digest_of(node)
        self._keep(digest, node)
        return Ref(kind, 0, count, digest)

    def _tree(self, refs: list[Ref]) -> bytes:
        """The ref above all of these, packed."""
        while len(refs) > 1:
            above: list[Ref] = []
            start = 0
            for at, ref in enumerate(refs, 1):
                held = at - start
                cut = held > 1 and ref.digest[0] < 256 // nodes.FAN_OUT
                if cut or held == nodes.LARGEST_FAN_OUT or at == len(refs):
                    node, count = nodes.index(refs[start:at])
                    digest = nodes.digest_of(node)
                    self._keep(digest, node)
                    above.append(Ref(ref.kind, ref.level + 1, count, digest))
                    start = at
            refs = above
        return refs[0].packed()


def _cut(entries: Sequence[bytes], *, blocks: bool) -> Iterator[Sequence[bytes]]:
    """The entries of each leaf. What an entry is decides whether a leaf, and a block, ends behind it.

    Lists grow at their end: leaves that a block has closed over are one, so reading takes few nodes.
    What is changed in a dict may stand anywhere: its leaves stay small.
    """
    leaves: list[Sequence[bytes]] = []  # of the block that is open
    block = start = size = block_size = 0
    for at, entry in enumerate(entries, 1):
        size += len(entry)
        chance, due = crc32(entry), len(entry) * _CUT
        if chance >= due and size < nodes.LARGEST_LEAF_BYTES:
            continue
        leaves.append(entries[start:at])
        block_size += size
        start, size = at, 0
        if not blocks or chance * nodes.BLOCK_LEAVES < due or block_size >= nodes.LARGEST_BLOCK_BYTES:
            yield entries[block:at]
            leaves.clear()
            block, block_size = at, 0
    yield from leaves
    if size:
        yield entries[start:]


def _typed(name: str, parts: bytes) -> bytes:
    return pack(msgspec.msgpack.Ext(nodes.TYPED, b"\x92" + pack(name) + parts))


def _spelt(key: object) -> str:
    """A key, short: it is the program's and may be of any size."""
    text = repr(key) if isinstance(key, str | int | bytes) else f"a {type(key).__name__}"
    return text if len(text) <= 60 else text[:59] + "…"


def _utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _head(kind: int, count: int) -> bytes:
    """The MessagePack header of an array or map."""
    small, middle, large = (0x90, 0xDC, 0xDD) if kind == LIST else (0x80, 0xDE, 0xDF)
    if count < 16:
        return bytes((small | count,))
    return struct.pack(">BH", middle, count) if count < 1 << 16 else struct.pack(">BI", large, count)
