"""Changes to stored facts by somebody who knows the format, but does not change the chain."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from playhead_core.facts import Content, Fact

_encode = msgspec.msgpack.Encoder().encode
_decode: msgspec.msgpack.Decoder[Fact] = msgspec.msgpack.Decoder(Fact)


@dataclass
class Tampered:
    """Some consecutive facts after a change, and the numbers of the affected facts."""

    facts: list[Fact]
    numbers: set[int]
    how: str


def flipped(facts: list[Fact], chance: random.Random) -> Tampered:
    """Flip a bit of a fact so that the result can still be decoded."""
    place = chance.randrange(len(facts))
    while True:
        data = bytearray(_encode(facts[place]))
        data[chance.randrange(2, len(data))] ^= 1 << chance.randrange(8)
        try:
            found = _decode.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if _encode(found) != _encode(facts[place]):
            return Tampered(_with(facts, place, found), {facts[place].seq}, "flipped")


def removed(facts: list[Fact], chance: random.Random) -> Tampered:
    """Remove a fact."""
    place = chance.randrange(len(facts))
    return Tampered([*facts[:place], *facts[place + 1 :]], {facts[place].seq}, "removed")


def closed_up(facts: list[Fact], chance: random.Random) -> Tampered:
    """Remove a fact, and renumber those after it to close the gap."""
    place = chance.randrange(len(facts))
    behind = [msgspec.structs.replace(fact, seq=fact.seq - 1) for fact in facts[place + 1 :]]
    return Tampered([*facts[:place], *behind], {facts[place].seq}, "closed up")


def swapped(facts: list[Fact], chance: random.Random) -> Tampered:
    """Swap the numbers of two facts."""
    if len(facts) < 2:
        return replaced(facts, chance)
    one, other = sorted(chance.sample(range(len(facts)), 2))
    left, right = facts[one], facts[other]
    made = _with(facts, one, msgspec.structs.replace(right, seq=left.seq))
    made = _with(made, other, msgspec.structs.replace(left, seq=right.seq))
    return Tampered(made, {left.seq, right.seq}, "swapped")


def disordered(facts: list[Fact], chance: random.Random) -> Tampered:
    """Swap the order of two neighbouring facts, which keep their numbers."""
    if len(facts) < 2:
        return replaced(facts, chance)
    place = chance.randrange(len(facts) - 1)
    made = _with(facts, place, facts[place + 1])
    return Tampered(_with(made, place + 1, facts[place]), {facts[place].seq}, "disordered")


def replaced(facts: list[Fact], chance: random.Random) -> Tampered:
    """Replace a fact with a different plausible one."""
    place = chance.randrange(len(facts))
    fact = facts[place]
    text = f"something else {chance.random()}".encode()
    body = Content.of(text) if fact.body is not None and fact.body.digest else Content.chunk(text)
    changes = chance.choice(
        [
            {"body": body},
            {"time_ns": fact.time_ns + chance.choice((-1, 1)) * chance.randrange(1, 10**9)},
            {"attributes": {**fact.attributes, "http.response.status_code": chance.randrange(600)}},
            {"name": fact.name + "x"},
        ]
    )
    return Tampered(
        _with(facts, place, msgspec.structs.replace(fact, **changes)), {fact.seq}, "replaced"
    )


WAYS: tuple[Callable[[list[Fact], random.Random], Tampered], ...] = (
    flipped,
    removed,
    closed_up,
    swapped,
    disordered,
    replaced,
)


def _with(facts: list[Fact], place: int, fact: Fact) -> list[Fact]:
    return [*facts[:place], fact, *facts[place + 1 :]]
