"""Messages of a PostgreSQL server, as its wire carries them.

https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """One column of a result."""

    name: bytes
    table: int
    place: int
    """Number of the column in that table."""
    type: int
    size: int
    modifier: int
    format: int
    """0: text, 1: binary."""


def message(kind: bytes, body: bytes = b"") -> bytes:
    """One message.

    >>> message(b"Z", b"I")
    b'Z\\x00\\x00\\x00\\x05I'
    """
    return kind + struct.pack("!I", len(body) + 4) + body


def welcome(parameters: Mapping[bytes, bytes], process: int, status: bytes) -> bytes:
    """Return what a server sends when a connection is opened, without the cancellation key."""
    told = b"".join(parameter(name, value) for name, value in parameters.items())
    key = message(b"K", struct.pack("!II", process & 0xFFFFFFFF, 0))
    return message(b"R", struct.pack("!I", 0)) + told + key + message(b"Z", status)


def parameter(name: bytes, value: bytes) -> bytes:
    """Return the message that a parameter of the server has this value."""
    return message(b"S", name + b"\0" + value + b"\0")


def columns(found: Sequence[Column]) -> bytes:
    """Return the columns of the rows that follow."""
    body = struct.pack("!H", len(found))
    for name, table, place, type, size, modifier, format in found:
        body += name + b"\0" + struct.pack("!IhIhih", table, place, type, size, modifier, format)
    return message(b"T", body)


def row(values: Sequence[bytes | None]) -> bytes:
    """One row."""
    pieces = [struct.pack("!H", len(values))]
    for value in values:
        if value is None:
            pieces.append(b"\xff\xff\xff\xff")
        else:
            pieces += (struct.pack("!I", len(value)), value)
    return message(b"D", b"".join(pieces))


def fields(kind: bytes, found: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return an error (``E``) or a notice (``N``), by code of the field."""
    return message(kind, b"".join(code + value + b"\0" for code, value in found) + b"\0")


def copying(kind: bytes, binary: int, formats: Sequence[int]) -> bytes:
    """Return the message that a copy begins, into the server (``G``) or out of it (``H``)."""
    body = struct.pack("!bH", binary, len(formats)) + b"".join(struct.pack("!H", one) for one in formats)
    return message(kind, body)


def notification(process: int, channel: bytes, payload: bytes) -> bytes:
    """Return a notification on a channel that the connection listens to."""
    return message(b"A", struct.pack("!I", process) + channel + b"\0" + payload + b"\0")


def split(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kinds and bodies of the messages in ``data``. ValueError if they are not whole.

    >>> list(split(b"Z\\x00\\x00\\x00\\x05I"))
    [(b'Z', b'I')]
    """
    place = 0
    while place < len(data):
        end = place + 1 + int.from_bytes(data[place + 1 : place + 5])
        if not place + 5 <= end <= len(data):
            raise ValueError("no message of PostgreSQL")
        yield data[place : place + 1], data[place + 5 : end]
        place = end


PREPARED = message(b"1")
CLOSED = message(b"3")
NO_ROWS = message(b"n")
NOTHING = message(b"I")
COPIED = message(b"c")
