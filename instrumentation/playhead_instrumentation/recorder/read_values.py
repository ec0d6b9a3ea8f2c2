"""The values of reads, as MessagePack.

Text that is not Unicode (a file name or variable whose bytes are not UTF-8) is an extension: its bytes.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec
from msgspec.msgpack import Ext

NOT_UNICODE: Final = 1
"""Code of the extension: text with lone surrogates, as UTF-8 in which they pass for characters."""

_encode: Final = msgspec.msgpack.Encoder().encode


def encode(value: Any) -> bytes:
    """Return a plain value (number, text, bytes, list or dict of such) as MessagePack."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_storable(value))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return Ext(NOT_UNICODE, value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, list | tuple):
        return [_storable(one) for one in cast("list[Any]", value)]
    elif isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return {_storable(name): _storable(one) for name, one in fields.items()}
    return value


def _extension(code: int, data: memoryview) -> Any:
    if code != NOT_UNICODE:
        raise ValueError(f"unknown extension {code} of a recorded value")
    return bytes(data).decode("utf-8", "surrogatepass")


decode: Final = msgspec.msgpack.Decoder(ext_hook=_extension).decode
"""The inverse of `encode`. `msgspec.MsgspecError` or ValueError for anything else."""
