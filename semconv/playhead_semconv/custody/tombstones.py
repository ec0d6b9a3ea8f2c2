"""Tombstones: what is left of deleted runs. They form a chain of their own, one for each store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from playhead_semconv.errors import CorruptTape
from playhead_semconv.facts import digest_of

FIRST = digest_of(b"playhead-tombstones\x00")
"""What stands in the place of a link before the first one."""


class Why(StrEnum):
    """Why runs went."""

    DELETED = "deleted"
    """Somebody named them, or their time was over."""
    REDACTED = "redacted"
    """They came again without credentials."""


class Tombstone(msgspec.Struct, frozen=True, array_like=True):
    """Runs that were deleted together."""

    why: str
    """One of `Why`."""
    time_ns: int
    by: str
    """Who did it: a user, a token, or the rule by which they went."""
    runs: list[tuple[bytes, str]]
    """Trace id and name of each."""
    facts: int
    spans: int
    chains: list[tuple[bytes, int, bytes]]
    """Of each process that went with them: instance, how many links its chain had, the last of them."""


_encode = msgspec.msgpack.Encoder().encode
_decode: msgspec.msgpack.Decoder[Tombstone] = msgspec.msgpack.Decoder(Tombstone)


def laid(before: bytes | None, tombstone: Tombstone) -> tuple[bytes, bytes]:
    """A tombstone as it is kept, and its link: BLAKE3 of the link before and it, joined."""
    said = _encode(tombstone)
    return said, digest_of((before or FIRST) + said)


def tombstone_of(said: bytes) -> Tombstone:
    """A tombstone of what is kept. `CorruptTape`."""
    try:
        return _decode.decode(said)
    except msgspec.DecodeError as problem:
        raise CorruptTape(f"a tombstone cannot be read: {problem}") from None


def wrong_tombstones(kept: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[int, str]]:
    """Of tombstones and their links in order: the number of each that is not what it was, and why."""
    before = FIRST
    for number, (said, link) in enumerate(kept, 1):
        if digest_of(before + said) != link:
            yield number, "does not follow from the one before"
        try:
            tombstone_of(said)
        except CorruptTape as problem:
            yield number, problem.what
        before = link
