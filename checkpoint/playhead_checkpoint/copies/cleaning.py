"""Packed values without their credentials.

Credentials are looked for in the JSON of a value, where names stand beside values. Only a value that
holds one is taken apart: texts in it are replaced by what is left of them, and bytes are masked.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, cast

import msgspec
from msgspec.msgpack import Ext

from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.encoding import holds_bytes, may_hold_bytes
from playhead_checkpoint.tree.nodes import OPEN, TYPED, pack, type_of, unpack

_JSON: Final = msgspec.json.Encoder(enc_hook=lambda _: None)


class Redacts(Protocol):
    """Takes credentials away; the redactor of a recording does."""

    def text(self, text: str) -> str:
        """The text without its credentials."""
        ...

    def body(self, data: bytes) -> tuple[bytes, int]:
        """JSON without its credentials, and how many there were."""
        ...

    def masked(self, data: bytes) -> bytes:
        """As many bytes, with a mask in the place of each credential."""
        ...


def cleaned(packed: bytes, redactor: Redacts) -> bytes:
    """A packed value without its credentials; itself, if there are none. What it refers to stays.

    `CorruptTape`: it is none. `ValueError`: what is left of its JSON is no JSON.
    """
    reading = _Reading()
    said, count = redactor.body(_JSON.encode(unpack(packed, reading.extension)))
    if not count and not reading.holds_bytes and not holds_bytes(packed):
        return packed
    value = unpack(packed, _whole)
    clean = _clean(value, msgspec.json.decode(said), redactor)
    return packed if clean == value else pack(clean)


class _Reading:
    """Reads extensions as they stand in JSON, and sees whether there may be bytes in them."""

    def __init__(self) -> None:
        self.holds_bytes = False

    def extension(self, code: int, data: memoryview) -> Any:
        """The value inside an extension; a reference has none."""
        if code not in (TYPED, OPEN):
            return None
        inside = bytes(data if code == TYPED else nodes.opened_list(data)[1])
        self.holds_bytes = self.holds_bytes or may_hold_bytes(inside, 0, len(inside))
        return unpack(inside, self.extension)


def _whole(code: int, data: memoryview) -> Ext:
    return Ext(code, bytes(data))


def _clean(value: Any, said: Any, redactor: Redacts) -> Any:
    """The value with the texts of its JSON."""
    kind = type_of(value)
    if kind is bytes:
        return redactor.masked(value)
    if kind is dict:
        pairs = zip(value.items(), cast("dict[str, Any]", said).items(), strict=True)
        return {
            _clean(key, name, redactor): _clean(one, other, redactor)
            for (key, one), (name, other) in pairs
        }
    if kind is list:
        return [_clean(one, other, redactor) for one, other in zip(value, said, strict=True)]
    if kind is Ext:
        return _clean_extension(value, said, redactor)
    if kind is str or (type_of(said) is str and value is not None):
        return said
    return value


def _clean_extension(value: Ext, said: Any, redactor: Redacts) -> Ext:
    data = bytes(value.data)
    if value.code == TYPED:
        return Ext(TYPED, pack(_clean(unpack(data, _whole), said, redactor)))
    if value.code == OPEN:
        refs, tail = nodes.opened_list(data)
        clean = pack(_clean(unpack(tail, _whole), said, redactor))
        return Ext(OPEN, nodes.open_list(refs) + clean)
    return value
