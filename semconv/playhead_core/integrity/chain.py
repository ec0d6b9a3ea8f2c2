"""The chain of a process instance: links over the digests of its facts, each made from the one before.

A link makes a `LinkStatement` about facts, given by their numbers: that they were stored, or how they
were changed later. Links are only ever appended, in the order of events. A saved link proves later that
the facts before it are unchanged. docs/tape-format.md has the byte format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from playhead_core.errors import CorruptTape
from playhead_core.facts import Fact, digest_of

DIGEST_BYTES = 32
MOST_FACTS = 4096
"""Facts that one link covers at most."""
LARGE_BYTES = 64 * 1024
"""Size of a body in bytes above which the fact's digest uses the body's BLAKE3 instead of the body."""
MOST_NUMBER = (1 << 63) - 1

_BEGINNING = b"playhead-chain\x00"
_encode = msgspec.msgpack.Encoder().encode


class What(StrEnum):
    """Kind of a statement about the facts of a link."""

    CAME = "came"
    """They were stored; the digests are theirs."""
    BEFORE = "before"
    """They were stored before the store had chains: nothing is known about them."""
    REDACTED = "redacted"
    """Other facts without credentials replaced them; the digests are those of the replacements."""
    EMPTIED = "emptied"
    """Their run was deleted. The digests are those of the remains."""
    AGED = "aged"
    """They were removed when their retention time expired."""


IN_PLACE = frozenset((What.REDACTED, What.EMPTIED))
"""Kinds whose digests are those of the facts that are now stored in place of the original ones."""


class LinkStatement(msgspec.Struct, frozen=True, array_like=True):
    """The statement of a link: kind, facts, time, and who caused it."""

    what: str
    """One of `What`."""
    ranges: list[tuple[int, int]]
    """Numbers of facts: first and last of each range, ascending."""
    time_ns: int
    """Time of the statement, ns since the epoch."""
    by: str = ""
    """Who caused it; empty for facts that just arrived."""


class Link(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """One link. As a record of a tape file it names the instance whose chain it belongs to."""

    instance: bytes
    said: bytes
    """MessagePack of a `LinkStatement`."""
    digest: bytes
    """BLAKE3 of the digests, joined in the order of the numbers."""
    link: bytes
    """BLAKE3 of the link before, ``digest`` and ``said``, joined."""
    digests: bytes = b""
    """The digests; left out if the file holds none of the facts."""


_decode_said: msgspec.msgpack.Decoder[LinkStatement] = msgspec.msgpack.Decoder(LinkStatement)


def fact_digest(fact: Fact, large: bytes | None = None) -> bytes:
    """Return the BLAKE3 of a fact's record on a tape, in which a large body is replaced by its BLAKE3.

    ``large``: BLAKE3 of the body, if its bytes are not available.
    """
    body = fact.body
    if large is None:
        if body is None or body.inline is None or len(body.inline) <= LARGE_BYTES:
            return digest_of(_encode(fact))
        large = digest_of(body.inline)
    record = [0, *msgspec.structs.astuple(fact)]
    if body is not None:
        record[9] = [body.digest, body.size, [large], body.base, body.base_bytes]
    return digest_of(_encode(record))


def digests_of(facts: Iterable[Fact]) -> bytes:
    """The digests of facts, joined."""
    return b"".join(map(fact_digest, facts))


def first_link(instance: bytes) -> bytes:
    """Return the value that precedes the first link."""
    return digest_of(_BEGINNING + instance)


def next_link(before: bytes, instance: bytes, statement: LinkStatement, digests: bytes) -> Link:
    """Return the link that follows ``before``. ``digests``: of the facts of the statement, joined."""
    said = _encode(statement)
    digest = digest_of(digests)
    return Link(instance, said, digest, joined(before, digest, said), digests)


def pieces(
    what: What, ranges: Iterable[tuple[int, int]], digests: bytes = b""
) -> Iterator[tuple[list[tuple[int, int]], bytes]]:
    """Split a statement about many facts into ranges and digests that fit into one link each."""
    counts = what in IN_PLACE
    some: list[tuple[int, int]] = []
    held = at = 0
    for first, last in ranges:
        while first <= last:
            end = min(last, first + MOST_FACTS - held - 1) if counts else last
            some.append((first, end))
            held += end - first + 1 if counts else 1
            first = end + 1
            if held >= MOST_FACTS:
                size = held * DIGEST_BYTES if counts else 0
                yield some, digests[at : at + size]
                some, held, at = [], 0, at + size
    if some:
        yield some, digests[at:]


def joined(before: bytes, digest: bytes, said: bytes) -> bytes:
    """Return the value of a link."""
    return digest_of(before + digest + said)


def statement_of(link: Link) -> LinkStatement:
    """Return the validated statement of a link. Raises `CorruptTape`."""
    try:
        said = _decode_said.decode(link.said)
        What(said.what)
    except (msgspec.DecodeError, ValueError) as problem:
        raise CorruptTape(f"the statement of a chain link cannot be read: {problem}") from None
    expected = 0
    for first, last in said.ranges:
        if not expected <= first <= last <= MOST_NUMBER:
            raise CorruptTape(f"a chain link has invalid fact numbers: {first} to {last}")
        expected = last + 1
    count = sum(last - first + 1 for first, last in said.ranges)
    most = MOST_FACTS if said.what == What.CAME or said.what in IN_PLACE else MOST_NUMBER
    if count > most or len(said.ranges) > MOST_FACTS or (said.what == What.CAME and not count):
        raise CorruptTape(f"a chain link covers an invalid number of facts: {count}")
    if said.what == What.CAME and len(said.ranges) != 1:
        raise CorruptTape("the facts of a chain link are not consecutive")
    if link.digests:
        if len(link.digests) != count * DIGEST_BYTES:
            raise CorruptTape(f"a chain link does not have one digest for each of its {count} facts")
        if digest_of(link.digests) != link.digest:
            raise CorruptTape("the digests of a chain link do not match its own digest")
    return said
