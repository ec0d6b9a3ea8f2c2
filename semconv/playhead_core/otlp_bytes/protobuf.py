"""Protobuf messages encoded by hand, where a library would cost more than the few fields.

A message is its fields, one after the other. Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


ONE_BYTE = tuple(bytes((number,)) for number in range(0x80))
"""Encodings of the numbers that `varint` writes as one byte."""


def varint(number: int) -> bytes:
    """Encode a number of at least 0: seven bits per byte, least significant first."""
    if number < 0x80:
        return ONE_BYTE[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at ``at``, and where it ends. ValueError: it does not end."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
    raise ValueError(f"byte {at}: a number does not end")


def field(number: int, data: bytes) -> bytes:
    """Encode a field of bytes, of text as UTF-8, or of a message. ``number``: 1 to 15."""
    return bytes((number << 3 | _BYTES,)) + varint(len(data)) + data


def whole_number(number: int, value: int) -> bytes:
    """Encode a field of an ``int64`` or a ``bool``. ``number``: 1 to 15."""
    return bytes((number << 3 | _VARINT,)) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def small(number: int, value: int) -> bytes:
    """As `whole_number`; empty for 0, the default, which need not be written."""
    return whole_number(number, value) if value else b""


def fixed64(number: int, eight: bytes) -> bytes:
    """Encode a field of eight bytes, little-endian, such as a ``double``. ``number``: 1 to 15."""
    return bytes((number << 3 | _FIXED64,)) + eight


def fixed32(number: int, four: bytes) -> bytes:
    """Encode a field of four bytes, little-endian. ``number``: any."""
    return varint(number << 3 | _FIXED32) + four
