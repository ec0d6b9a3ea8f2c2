"""Removes credentials from packed values.

The search looks at the JSON of a value, because names next to values matter. Only a value that holds a
credential is unpacked: its texts are replaced by the redacted ones, and bytes are masked.
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
    """Removes credentials; implemented by the redactor of a recording."""

    def text(self, text: str) -> str:
        """Return the text without credentials."""
        ...

    def body(self, data: bytes) -> tuple[bytes, int]:
        """Return JSON without credentials, and how many there were."""
        ...

    def masked(self, data: bytes) -> bytes:
        """Return bytes of the same length with masked credentials."""
        ...


def cleaned(packed: bytes, redactor: Redacts) -> bytes:
    """Return a packed value without credentials; the same object if there are none. References stay.

    `CorruptTape` if it is not a packed value. `ValueError` if the redacted JSON is not valid.
    """
    reading = _Reading()
    redacted, count = redactor.body(_JSON.encode(unpack(packed, reading.extension)))
    if not count and not reading.holds_bytes and not holds_bytes(packed):
        return packed
    value = unpack(packed, _whole)
    clean = _clean(value, msgspec.json.decode(redacted), redactor)
    return packed if clean == value else pack(clean)


class _Reading:
    """Decodes extensions for JSON, and notes whether they may contain bytes."""

    def __init__(self) -> None:
        self.holds_bytes = False

    def extension(self, code: int, data: memoryview) -> Any:
        """Return the value inside an extension; None for a reference."""
        if code not in (TYPED, OPEN):
            return None
        inside = bytes(data if code == TYPED else nodes.opened_list(data)[1])
        self.holds_bytes = self.holds_bytes or may_hold_bytes(inside, 0, len(inside))
        return unpack(inside, self.extension)


def _whole(code: int, data: memoryview) -> Ext:
    return Ext(code, bytes(data))


def _clean(value: Any, redacted: Any, redactor: Redacts) -> Any:
    """Return the value with the texts of its redacted JSON."""
    kind = type_of(value)
    if kind is bytes:
        return redactor.masked(value)
    if kind is dict:
        pairs = zip(value.items(), cast("dict[str, Any]", redacted).items(), strict=True)
        return {
            _clean(key, name, redactor): _clean(one, other, redactor)
            for (key, one), (name, other) in pairs
        }
    if kind is list:
        return [_clean(one, other, redactor) for one, other in zip(value, redacted, strict=True)]
    if kind is Ext:
        return _clean_extension(value, redacted, redactor)
    if kind is str or (type_of(redacted) is str and value is not None):
        return redacted
    return value


def _clean_extension(value: Ext, redacted: Any, redactor: Redacts) -> Ext:
    data = bytes(value.data)
    if value.code == TYPED:
        return Ext(TYPED, pack(_clean(unpack(data, _whole), redacted, redactor)))
    if value.code == OPEN:
        refs, tail = nodes.opened_list(data)
        clean = pack(_clean(unpack(tail, _whole), redacted, redactor))
        return Ext(OPEN, nodes.open_list(refs) + clean)
    return value
