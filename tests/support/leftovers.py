"""Everything readable in the files of a data directory: current data, or deleted and not overwritten."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import zstandard

MAGIC = b"\x28\xb5\x2f\xfd"
WAL_HEADER, WAL_FRAME_HEADER = 32, 24


def leftovers(folder: Path) -> Iterator[bytes]:
    """The raw bytes of every file, and the content of every compressed frame in them.

    A frame in a database spans pages that may no longer belong to anything: its first part ends with the
    number of a page, and each following page begins with the number of the next.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            try:
                data = path.read_bytes()
            except FileNotFoundError:  # a receiver that runs has just removed it
                continue
            yield data
            yield from _whole_frames(data)
    database, log = folder / "store.sqlite", folder / "store.sqlite-wal"
    if database.exists():
        pages = list(_pages(database.read_bytes(), log.read_bytes() if log.exists() else b""))
        images: dict[int, list[bytes]] = {}
        for number, page in pages:
            images.setdefault(number, []).append(page)
        for _, page in pages:
            yield from _frames_of(page, images)


def finds(folder: Path, text: bytes) -> bool:
    """Whether ``text`` can be read from a data directory in one of these ways."""
    return any(text in data for data in leftovers(folder))


def _pages(database: bytes, log: bytes) -> Iterator[tuple[int, bytes]]:
    size = int.from_bytes(database[16:18], "big") if len(database) > 100 else 4096
    for number, at in enumerate(range(0, len(database), size), 1):
        yield number, database[at : at + size]
    for at in range(WAL_HEADER, len(log) - WAL_FRAME_HEADER, size + WAL_FRAME_HEADER):
        begin = at + WAL_FRAME_HEADER
        yield int.from_bytes(log[at : at + 4], "big"), log[begin : begin + size]


def _places(data: bytes) -> Iterator[int]:
    at = data.find(MAGIC)
    while at >= 0:
        yield at
        at = data.find(MAGIC, at + 1)


def _whole_frames(data: bytes) -> Iterator[bytes]:
    for at in _places(data):
        found = _opened(data[at:])
        if found is not None:
            yield found


def _frames_of(page: bytes, images: dict[int, list[bytes]]) -> Iterator[bytes]:
    for at in _places(page):
        for end in range(at + 8, len(page) - 3):
            (number,) = struct.unpack_from(">I", page, end)
            for follower in images.get(number, ()) if number > 1 else ():
                found = _opened(page[at:end] + _followers(follower, images))
                if found is not None:
                    yield found


def _followers(page: bytes, images: dict[int, list[bytes]]) -> bytes:
    parts = [page[4:]]
    for _ in range(len(images)):
        number = int.from_bytes(page[:4], "big")
        if not number or number not in images:
            break
        page = images[number][-1]
        parts.append(page[4:])
    return b"".join(parts)


def _opened(data: bytes) -> bytes | None:
    inflater = zstandard.ZstdDecompressor().decompressobj()
    try:
        found = inflater.decompress(data)
    except zstandard.ZstdError:
        return None
    return found if inflater.eof else None
