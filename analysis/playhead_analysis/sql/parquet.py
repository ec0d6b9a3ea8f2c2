"""Parquet files of tables. A file has no dependency on a library: columns, gzip, and a footer in Thrift.

https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, Final, TypeAlias

from playhead_analysis.sql.tables import Kind, Row

MAGIC: Final = b"PAR1"
ROWS: Final = 50_000
"""Rows of a group."""
_TYPES: Final[dict[Kind, int]] = {"integer": 2, "real": 5, "text": 6}
_GZIP, _PLAIN, _RLE, _OPTIONAL, _UTF8 = 2, 0, 3, 1, 0

Field: TypeAlias = tuple[int, Any]
"""Id and value of a field of a Thrift struct: a number is an I32, `_Long` an I64, bytes a string, a list
of fields a struct, a tuple a list."""


class _Long(int):
    """A number of 64 bits."""


def parquet_of(columns: Sequence[tuple[str, Kind]], rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield the bytes of a Parquet file with the columns and rows of a table."""
    yield MAGIC
    at = len(MAGIC)
    groups: list[list[Field]] = []
    count = 0
    left = iter(rows)
    while some := list(islice(left, ROWS)):
        chunks: list[list[Field]] = []
        began = at
        for index, (name, kind) in enumerate(columns):
            page, plain_bytes = _page(kind, [row[index] for row in some])
            described: list[Field] = [
                (1, _TYPES[kind]),
                (2, (_PLAIN, _RLE)),
                (3, (name.encode(),)),
                (4, _GZIP),
                (5, _Long(len(some))),
                (6, _Long(plain_bytes)),
                (7, _Long(len(page))),
                (9, _Long(at)),
            ]
            chunks.append([(2, _Long(at)), (3, described)])
            yield page
            at += len(page)
        groups.append([(1, tuple(chunks)), (2, _Long(at - began)), (3, _Long(len(some)))])
        count += len(some)
    root: list[Field] = [(4, b"table"), (5, len(columns))]
    schema = [root, *(_element(name, kind) for name, kind in columns)]
    footer = _struct(
        [(1, 1), (2, tuple(schema)), (3, _Long(count)), (4, tuple(groups)), (6, b"playhead")]
    )
    yield footer + struct.pack("<I", len(footer)) + MAGIC


def _element(name: str, kind: Kind) -> list[Field]:
    """Return the description of a column."""
    found: list[Field] = [(1, _TYPES[kind]), (3, _OPTIONAL), (4, name.encode())]
    return [*found, (6, _UTF8)] if kind == "text" else found


def _page(kind: Kind, values: Sequence[Any]) -> tuple[bytes, int]:
    """Return a page with its header, and its size before it is compressed."""
    levels = b"".join(
        _varint(sum(1 for _ in some) << 1) + bytes([there])
        for there, some in groupby(value is not None for value in values)
    )
    known = [value for value in values if value is not None]
    if kind == "text":
        texts = (str(value).encode("utf-8", "backslashreplace") for value in known)
        plain = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    else:
        plain = struct.pack(f"<{len(known)}{'q' if kind == 'integer' else 'd'}", *known)
    data = struct.pack("<I", len(levels)) + levels + plain
    packed = gzip.compress(data, mtime=0)
    header: list[Field] = [(1, len(values)), (2, _PLAIN), (3, _RLE), (4, _RLE)]
    head = _struct([(1, 0), (2, len(data)), (3, len(packed)), (5, header)])
    return head + packed, len(head) + len(data)


def _struct(fields: Iterable[Field]) -> bytes:
    """Return a struct in Thrift's compact protocol."""
    found, before = b"", 0
    for number, value in fields:
        found += bytes([(number - before) << 4 | _type(value)]) + _value(value)
        before = number
    return found + b"\0"


def _type(value: Any) -> int:
    if isinstance(value, int):
        return 6 if isinstance(value, _Long) else 5
    return 8 if isinstance(value, bytes) else 9 if isinstance(value, tuple) else 12


def _value(value: Any) -> bytes:
    if isinstance(value, int):
        return _varint(value << 1)  # zigzag; none is negative
    if isinstance(value, bytes):
        return _varint(len(value)) + value
    if isinstance(value, tuple):
        size, kind = len(value), _type(value[0]) if value else 12  # type: ignore[arg-type]
        head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + _varint(size)
        return head + b"".join(map(_value, value))  # type: ignore[arg-type]
    return _struct(value)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
