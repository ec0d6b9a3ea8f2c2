"""Searches for values in files, including compressed content and rows of databases."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import zstandard

ZSTD = bytes.fromhex("28b52ffd")


def texts(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The content of every file below ``folder``, raw and with compressed parts decompressed."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            yield str(path), data
            values = [data]
            if data.startswith(b"SQLite format 3"):
                # A value larger than a page is scattered over the file.
                values += rows(path)
            for value in values:
                yield str(path), value
                for opened in unpacked(value):
                    yield f"{path} (opened)", opened


def rows(path: Path) -> list[bytes]:
    """Every text and blob in a database."""
    found: list[bytes] = []
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as base:
        for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in base.execute(f'SELECT * FROM "{table}"'):
                found += [value for value in row if isinstance(value, bytes)]
                found += [value.encode() for value in row if isinstance(value, str)]
    return found


def unpacked(data: bytes) -> Iterator[bytes]:
    for found in re.finditer(re.escape(ZSTD), data):
        try:
            reader = zstandard.ZstdDecompressor().decompressobj()
            yield reader.decompress(data[found.start() :])
        except zstandard.ZstdError:
            continue
    for found in re.finditer(rb"\x1f\x8b\x08", data):
        try:
            yield zlib.decompressobj(31).decompress(data[found.start() :])
        except zlib.error:
            continue


def leaks(where: Iterator[tuple[str, bytes]], wanted: dict[str, bytes]) -> dict[str, str]:
    """Which of ``wanted`` occur, each with the first place."""
    found: dict[str, str] = {}
    for place, data in where:
        for name, value in wanted.items():
            if name not in found and value in data:
                found[name] = place
    return found
