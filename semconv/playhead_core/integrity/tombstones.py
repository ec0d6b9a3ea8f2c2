"""Tombstones: records of deleted runs. They form a separate hash chain, one per store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from playhead_core.errors import CorruptTape
from playhead_core.facts import digest_of

FIRST = digest_of(b"playhead-tombstones\x00")
"""Value that precedes the first link."""


class Why(StrEnum):
    """Why runs were removed."""

    DELETED = "deleted"
    """Someone deleted them, or their retention time expired."""
    REDACTED = "redacted"
    """They were replaced by a version without credentials."""


class Tombstone(msgspec.Struct, frozen=True, array_like=True):
    """Runs that were deleted together."""

    why: str
    """One of `Why`."""
    time_ns: int
    by: str
    """Who caused it: a user, a token, or the retention rule."""
    runs: list[tuple[bytes, str]]
    """Trace id and name of each."""
    facts: int
    spans: int
    chains: list[tuple[bytes, int, bytes]]
    """For each process that was removed with them: instance, length of its chain, the last link."""


_encode = msgspec.msgpack.Encoder().encode
_decode: msgspec.msgpack.Decoder[Tombstone] = msgspec.msgpack.Decoder(Tombstone)


def sealed(before: bytes | None, tombstone: Tombstone) -> tuple[bytes, bytes]:
    """Return a tombstone in stored form, and its link: BLAKE3 of the previous link and that form."""
    said = _encode(tombstone)
    return said, digest_of((before or FIRST) + said)


def tombstone_of(said: bytes) -> Tombstone:
    """Parse a stored tombstone. Raises `CorruptTape`."""
    try:
        return _decode.decode(said)
    except msgspec.DecodeError as problem:
        raise CorruptTape(f"a tombstone cannot be read: {problem}") from None


def changed_tombstones(kept: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[int, str]]:
    """Yield the number of each changed tombstone, and why; ``kept``: tombstones and links in order."""
    before = FIRST
    for number, (said, link) in enumerate(kept, 1):
        if digest_of(before + said) != link:
            yield number, "does not follow from the previous one"
        try:
            tombstone_of(said)
        except CorruptTape as problem:
            yield number, problem.what
        before = link
