"""Chains of facts: what a digest covers, what links say, and what is made of hostile ones."""

from __future__ import annotations

import random

import msgspec
import pytest
from support.tapes import tampering
from support.tapes.batches import facts_of

from playhead_core.errors import CorruptTape
from playhead_core.facts import Content, Fact, digest_of
from playhead_core.integrity import (
    DIGEST_BYTES,
    MOST_FACTS,
    Link,
    LinkStatement,
    What,
    digests_of,
    fact_digest,
    first_link,
    next_link,
    statement_of,
)
from playhead_core.integrity.chain import LARGE_BYTES, pieces
from playhead_core.integrity.chain_check import ChainCheck
from playhead_core.integrity.tombstones import FIRST, Tombstone, changed_tombstones, sealed

INSTANCE = b"s" * 16
FACTS = facts_of(INSTANCE, range(50))


def chain(*said: tuple[What, list[tuple[int, int]], bytes]) -> list[Link]:
    links: list[Link] = []
    for what, ranges, digests in said:
        before = links[-1].link if links else first_link(INSTANCE)
        links.append(next_link(before, INSTANCE, LinkStatement(what, ranges, 1, "bob"), digests))
    return links


def came(first: int, last: int) -> tuple[What, list[tuple[int, int]], bytes]:
    return What.CAME, [(first, last)], digests_of(FACTS[first : last + 1])


def said(links: list[Link], facts: list[Fact]) -> list[tuple[str, str]]:
    account = ChainCheck.of(INSTANCE, links)
    for fact in facts:
        account.take(fact)
    return [(one.numbers, one.problem) for one in account.differences()]


def test_every_field_of_a_fact_is_in_its_digest():
    fact = FACTS[3]
    chance, seen = random.Random(1), {fact_digest(fact)}
    for name in msgspec.structs.asdict(fact):
        value = getattr(fact, name)
        other: dict[type, object] = {int: -7, str: "x", bytes: b"x", dict: {"a": 1}}
        seen.add(fact_digest(msgspec.structs.replace(fact, **{name: other.get(type(value))})))
    assert len(seen) == 12
    for _ in range(200):
        assert tampering.flipped(FACTS, chance).facts != FACTS


def test_a_large_body_is_in_it_by_its_own_digest():
    large = bytes(LARGE_BYTES + 1)
    fact = msgspec.structs.replace(FACTS[0], body=Content.chunk(large))
    bare = msgspec.structs.replace(FACTS[0], body=Content(b"", len(large)))
    assert fact_digest(fact) == fact_digest(bare, digest_of(large))
    posing = msgspec.structs.replace(FACTS[0], body=Content(b"", len(large), digest_of(large)))
    assert len({fact_digest(one) for one in (fact, bare, posing)}) == 3


def test_facts_in_their_chain_in_whatever_order_it_was_made():
    links = chain(came(20, 49), came(0, 4), came(5, 19))
    assert said(links, FACTS) == []
    assert ChainCheck.of(INSTANCE, links).head == links[-1].link


def test_each_difference_by_its_number():
    links = chain(came(0, 49))
    other = msgspec.structs.replace(FACTS[7], lane=9)
    assert said(links, [*FACTS[:7], other, *FACTS[8:]]) == [("7", "was replaced")]
    assert said(links, [*FACTS[:7], *FACTS[9:]]) == [("7-8", "are missing")]
    assert said(chain(came(0, 9)), FACTS[:12]) == [
        ("10-11", "were added: no link of the chain covers it")
    ]
    assert said(links, [*FACTS[:7], FACTS[8], FACTS[7], *FACTS[9:]]) == [
        ("7", "is out of order or duplicated")
    ]
    swapped = [
        msgspec.structs.replace(FACTS[30], seq=4),
        *FACTS[5:30],
        msgspec.structs.replace(FACTS[4], seq=30),
    ]
    assert said(links, [*FACTS[:4], *swapped, *FACTS[31:]]) == [
        ("4", "has the content of fact 30"),
        ("30", "has the content of fact 4"),
    ]
    shifted = [msgspec.structs.replace(one, seq=one.seq - 1) for one in FACTS[46:]]
    assert said(links, [*FACTS[:45], *shifted]) == [
        ("45", "has the content of fact 46"),
        ("46", "has the content of fact 47"),
        ("47", "has the content of fact 48"),
        ("48", "has the content of fact 49"),
        ("45", "is missing"),
        ("49", "is stored as fact 48"),
    ]


def test_what_was_done_to_facts_is_accounted_for():
    other = msgspec.structs.replace(FACTS[3], attributes={"a": "b"})
    links = chain(
        came(0, 9),
        (What.REDACTED, [(3, 3)], fact_digest(other)),
        (What.AGED, [(5, 6)], b""),
    )
    left = [*FACTS[:3], other, FACTS[4], *FACTS[7:10]]
    assert said(links, left) == []
    assert said(links, [*left[:-1], msgspec.structs.replace(FACTS[9], lane=2)]) == [
        ("9", "was replaced")
    ]
    assert [one.what for one in ChainCheck.of(INSTANCE, links).said] == [What.REDACTED, What.AGED]


def test_a_chain_that_began_later_says_nothing_of_before():
    links = chain((What.BEFORE, [(0, 9)], b""), came(10, 19))
    any_ = msgspec.structs.replace(FACTS[2], lane=9)
    assert said(links, [*FACTS[:2], any_, *FACTS[3:20]]) == []
    assert said(links, FACTS[1:20]) == [("0", "is missing")]
    assert said([], FACTS) == [("-1", "has facts but no chain")]


def test_a_chain_that_was_changed():
    links = chain(came(0, 9), came(10, 19), came(20, 29))
    for changed in ([links[0], links[2]], [links[1], links[0], links[2]], links[1:]):
        assert any("does not follow" in problem for _, problem in said(changed, FACTS[:30]))
    twice = chain(came(0, 9), came(5, 14))
    assert ("-1", "two links have fact 5, the first of them from fact 0 on") in said(twice, FACTS[:15])


@pytest.mark.parametrize(
    "about",
    [
        LinkStatement("nothing known", [(0, 0)], 1),
        LinkStatement(What.CAME, [], 1),
        LinkStatement(What.CAME, [(0, 1), (3, 4)], 1),
        LinkStatement(What.CAME, [(0, MOST_FACTS)], 1),
        LinkStatement(What.EMPTIED, [(0, 1 << 62)], 1),
        LinkStatement(What.AGED, [(5, 4)], 1),
        LinkStatement(What.AGED, [(-1, 4)], 1),
        LinkStatement(What.AGED, [(4, 9), (2, 3)], 1),
        LinkStatement(What.AGED, [(0, 1 << 63)], 1),
        LinkStatement(What.AGED, [(2 * at, 2 * at) for at in range(MOST_FACTS + 1)], 1),
    ],
)
def test_a_link_that_says_nonsense_is_refused(about: LinkStatement):
    with pytest.raises(CorruptTape):
        statement_of(Link(INSTANCE, msgspec.msgpack.encode(about), b"", b""))


def test_a_link_with_other_digests_is_refused():
    (link,) = chain(came(0, 1))
    for digests in (b"x", link.digests[:-1], link.digests[::-1], link.digests + bytes(DIGEST_BYTES)):
        with pytest.raises(CorruptTape):
            statement_of(msgspec.structs.replace(link, digests=digests))
    for raw in (b"", b"\xc1", b"\x90", msgspec.msgpack.encode([1, 2, 3, 4])):
        with pytest.raises(CorruptTape):
            statement_of(msgspec.structs.replace(link, said=raw))


def test_a_chain_of_nonsense_is_given_up():
    link = Link(INSTANCE, b"\xc1", b"", b"")
    account = ChainCheck.of(INSTANCE, [link] * 10_000)
    assert 100 <= len(account.problems) < 103


def test_much_is_said_in_several_links():
    digests = b"".join(digest_of(bytes([at % 256, at // 256])) for at in range(10_000))
    found = list(pieces(What.REDACTED, [(0, 8999), (20_000, 20_999)], digests))
    assert [ranges for ranges, _ in found] == [
        [(0, 4095)],
        [(4096, 8191)],
        [(8192, 8999), (20_000, 20_999)],
    ]
    assert b"".join(their for _, their in found) == digests
    for ranges, their in found:
        statement_of(next_link(b"", INSTANCE, LinkStatement(What.REDACTED, ranges, 1), their))
    assert [len(ranges) for ranges, _ in pieces(What.AGED, [(2 * n, 2 * n) for n in range(5000)])] == [
        4096,
        904,
    ]


def test_tombstones_follow_one_another():
    kept: list[tuple[bytes, bytes]] = []
    for number in range(3):
        before = kept[-1][1] if kept else None
        kept.append(
            sealed(before, Tombstone("deleted", number, "bob", [(b"t" * 16, "run-1")], 1, 2, []))
        )
    assert kept[0][1] == digest_of(FIRST + kept[0][0])
    assert list(changed_tombstones(kept)) == []
    assert list(changed_tombstones([kept[0], kept[2]])) == [(2, "does not follow from the previous one")]
