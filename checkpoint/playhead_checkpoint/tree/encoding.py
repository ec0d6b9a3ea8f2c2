"""Packs a value as one piece of MessagePack, with typed values as extensions."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec
import ormsgpack

from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.nodes import DICT, LIST, pack, type_of
from playhead_checkpoint.tree.standard_types import STANDARD, TypeShape, Unsorted
from playhead_checkpoint.tree.types import Types
from playhead_core.errors import StateRefused

STRICT: Final = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
_SCALARS: Final = frozenset({type(None), bool, int, float})
_MOST_NESTED: Final = 6
_MOST_HEADS: Final = 32
"""Deepest nesting of typed values, and most containers in a nested one, that are packed in C."""
_CONTAINER_HEADS: Final = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))


class NotPlain(TypeError):
    """A value that cannot be packed in C."""


class ValueEncoder:
    """Packs whole values; ``types``: the registered types.

    Almost all work happens in C, for values of exactly the types of JSON, and bytes. The C packer also
    accepts bytes-like objects as bytes: a caller that finds bytes in the result calls `exactly`.
    """

    def __init__(self, types: Types) -> None:
        self.types = types
        self._nested = 0
        self._depth = 0
        self._heads: dict[str, bytes] = {}

    def packed(self, value: Any) -> bytes:
        """Pack a value; the caller checks bytes in it. `NotPlain` if only `exactly` can pack it."""
        try:
            return ormsgpack.packb(value, self._typed_in_c, STRICT)
        except TypeError:
            raise NotPlain from None

    def exactly(self, state: Any) -> bytes:
        """Pack a state. `StateRefused` names the path and type of a value that cannot be stored."""
        try:
            return self._value(state)
        except StateRefused as refused:
            keys = "".join(f"[{_spelt(key)}]" for key in refused.path)
            refused.what = f"state{keys}: {refused.what}"
            raise

    def _typed_in_c(self, value: Any) -> ormsgpack.Ext:
        shape = self.types.shape_of(value)
        if shape is None or self._nested >= _MOST_NESTED:
            raise NotPlain
        self._nested += 1
        try:
            parts = shape.apart(value)
            if isinstance(parts, Unsorted):
                entries = sorted(ormsgpack.packb(one, self._typed_in_c, STRICT) for one in parts)
                data = head(LIST, len(entries)) + b"".join(entries)
            else:
                data = ormsgpack.packb(parts, self._typed_in_c, STRICT)
            if (
                self._nested > 1
                and len(data) - len(data.translate(None, _CONTAINER_HEADS)) > _MOST_HEADS
            ):
                raise NotPlain
            if holds_bytes(data):
                data = self._parts(parts)
        finally:
            self._nested -= 1
        return ormsgpack.Ext(nodes.TYPED, self._head(shape.name) + data)

    def _head(self, name: str) -> bytes:
        found = self._heads.get(name)
        if found is None:
            found = self._heads[name] = b"\x92" + pack(name)
        return found

    # Value by value

    def _value(self, value: Any) -> bytes:
        kind = type_of(value)
        if kind is dict or kind is list:
            if _small(value, nodes.INLINE_BYTES, nodes.MOST_DEPTH - self._depth) >= 0:
                try:
                    return pack(value)
                except (OverflowError, UnicodeEncodeError):
                    pass
            return self._deeper(self._list if kind is list else self._dict, value)
        if kind is str:
            return pack(value) if _utf8(value) else self._typed(value, STANDARD[str])
        if kind is bytes:
            return pack(value)
        if kind in _SCALARS:
            try:
                return pack(value)
            except OverflowError:
                return self._typed(value, STANDARD[int])
        shape = self.types.shape_of(value)
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
        """Pack a value below a key; an error gets the key in front of its path."""
        try:
            return self._value(value)
        except StateRefused as refused:
            raise refused.below(key) from None

    def _list(self, value: list[Any]) -> bytes:
        entries: list[bytes] = []
        try:
            for one in value:
                entries.append(self._value(one))
        except StateRefused as refused:
            raise refused.below(len(entries)) from None
        return head(LIST, len(entries)) + b"".join(entries)

    def _dict(self, value: dict[Any, Any]) -> bytes:
        entries: list[bytes] = []
        for key, one in value.items():
            if type(key) is not str or not _utf8(key):
                return self._pairs(value)
            entries += (pack(key), self._at(key, one))
        return head(DICT, len(value)) + b"".join(entries)

    def _pairs(self, value: dict[Any, Any]) -> bytes:
        """Pack a dict with keys other than text: keys and values in turn."""
        entries: list[bytes] = []
        for key, one in value.items():
            entries += (self._at(key, key), self._at(key, one))
        return typed(STANDARD[dict].name, head(LIST, len(entries)) + b"".join(entries))

    def _typed(self, value: Any, shape: TypeShape) -> bytes:
        try:
            parts = shape.apart(value)
        except Exception as problem:  # the type of the program may raise anything
            raise StateRefused(
                f"a value of type {type(value).__module__}.{type(value).__qualname__} cannot be stored",
                cause=f"{type(problem).__name__}: {problem}",
            ) from problem
        return typed(shape.name, self._parts(parts))

    def _parts(self, parts: Any) -> bytes:
        if not isinstance(parts, Unsorted):
            return self._value(parts)
        entries = sorted(map(self._value, parts))
        return head(LIST, len(entries)) + b"".join(entries)


def typed(name: str, parts: bytes) -> bytes:
    """Pack a typed value."""
    return pack(msgspec.msgpack.Ext(nodes.TYPED, b"\x92" + pack(name) + parts))


def head(kind: int, count: int) -> bytes:
    """Return the MessagePack header of an array or map."""
    small, middle, large = (0x90, 0xDC, 0xDD) if kind == LIST else (0x80, 0xDE, 0xDF)
    if count < 16:
        return bytes((small | count,))
    return struct.pack(">BH", middle, count) if count < 1 << 16 else struct.pack(">BI", large, count)


def holds_bytes(data: bytes) -> bool:
    """Whether a packed value contains bytes, outside of typed values."""
    if not may_hold_bytes(data, 0, len(data)):
        return False
    return _cached_holds_bytes(data) if len(data) <= nodes.WHOLE_BYTES else _decoded_holds_bytes(data)


def may_hold_bytes(data: bytes, at: int, end: int) -> bool:
    """Whether the range may contain bytes, so that `holds_bytes` has to decide."""
    find = data.find
    return find(b"\xc4", at, end) >= 0 or find(b"\xc5", at, end) >= 0 or find(b"\xc6", at, end) >= 0


def _decoded_holds_bytes(data: bytes) -> bool:
    ahead: list[Any] = [msgspec.msgpack.decode(data, ext_hook=lambda code, data: None)]
    while ahead:
        one = ahead.pop()
        if type_of(one) is bytes:
            return True
        if type_of(one) is list:
            ahead += one
        elif type_of(one) is dict:
            ahead += one.values()
    return False


_cached_holds_bytes: Final = lru_cache(maxsize=512)(_decoded_holds_bytes)


def _small(value: Any, room: int, levels: int) -> int:
    """Return how many bytes of ``room`` are left after a list or dict of plain JSON values.

    Negative if it has other values, is larger, or is nested deeper than ``levels``.
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


def _spelt(key: object) -> str:
    """Return a short text for a key, which may have any size."""
    text = repr(key) if isinstance(key, str | int | bytes) else f"a {type(key).__name__}"
    return text if len(text) <= 60 else text[:59] + "…"


def _utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
