"""SQLite databases on a tape: the blocks of the file that have changed since the tape last held it.

>>> before, after = b"a" * 5000, b"a" * 4096 + b"b" * 904
>>> changes = blocks_changed(before, after)
>>> changes.indexes, len(changes.data)
([1], 904)
>>> with_blocks(before, decode_blocks(encode_blocks(changes))) == after
True
"""

from __future__ import annotations

from typing import Final

import msgspec

BLOCK_BYTES: Final = 4096
"""Size of a block, the usual size of a page of SQLite; the last block of a file may be shorter."""

MOST_BYTES: Final = 256 << 20
"""Largest database that a reader puts together, in bytes."""


class ChangedBlocks(msgspec.Struct, frozen=True, array_like=True):
    """What differs between two states of a file."""

    size: int
    """Bytes of the later state."""
    indexes: list[int]
    """Numbers of the blocks that differ, from 0, ascending."""
    data: bytes
    """These blocks, one after the other."""


def blocks_changed(before: bytes, after: bytes) -> ChangedBlocks:
    """What turns ``before`` into ``after``."""
    indexes: list[int] = []
    blocks: list[bytes] = []
    for index, start in enumerate(range(0, len(after), BLOCK_BYTES)):
        block = after[start : start + BLOCK_BYTES]
        if before[start : start + BLOCK_BYTES] != block:
            indexes.append(index)
            blocks.append(block)
    return ChangedBlocks(len(after), indexes, b"".join(blocks))


def with_blocks(before: bytes, changes: ChangedBlocks) -> bytes:
    """The later state. ValueError if the changes do not fit ``before``."""
    if not 0 <= changes.size <= MOST_BYTES:
        raise ValueError(f"a database of {changes.size} bytes is larger than what is put together")
    after = bytearray(before[: changes.size])
    known = len(after)
    after += bytes(changes.size - known)
    told = 0
    for index in changes.indexes:
        start = index * BLOCK_BYTES
        block = changes.data[told : told + BLOCK_BYTES]
        wanted = min(BLOCK_BYTES, changes.size - start)
        if index < 0 or not 0 < wanted <= len(block):
            raise ValueError(f"block {index} does not fit a file of {changes.size} bytes")
        after[start : start + wanted] = block[:wanted]
        told += wanted
        if start <= known < start + wanted:
            known = start + wanted
    if known < changes.size:
        raise ValueError(f"of {changes.size} bytes those from {known} on are not known")
    return bytes(after)


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(ChangedBlocks).decode


def encode_blocks(changes: ChangedBlocks) -> bytes:
    """The body of a fact ``playhead.database``."""
    return _encode(changes)


def decode_blocks(data: bytes) -> ChangedBlocks:
    """The inverse of `encode_blocks`. ValueError for anything else."""
    try:
        return _decode(data)
    except msgspec.DecodeError as problem:
        raise ValueError(f"no changes of a database: {problem}") from problem
