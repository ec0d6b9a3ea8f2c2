"""What a tape in a file holds in memory: where things lie, and not what they are."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from playhead_core.facts import Content, Delivery, ExchangeId, Fact, digest_of
from playhead_core.tape import indexed_tapes
from playhead_core.tape.frames import Header, Record, SpanRecord, scan_whole
from playhead_core.tape.indexed_tapes import Gathered, MemoryTape, frames_of, gather
from playhead_semconv import attributes as a
from playhead_semconv import events as e

INSTANCE = b"i" * 16
CALLS = 300
MIB = 1 << 20


def calls(count: int, size_bytes: int) -> Iterator[Fact]:
    """Exchanges whose bodies extend the ones before, and whose answers are as long again."""
    body, content = b"", None
    for number in range(count):
        tail = b"%d" % number + b"x" * size_bytes
        whole = body + tail
        base = content.digest if content is not None else None
        content = Content(digest_of(whole), len(whole), tail, base, len(body))
        id, seq = ExchangeId(7, "http", number), number * 3
        asked = {a.PLAYHEAD_ASK_KEY: "POST http://x/v1", a.PLAYHEAD_HTTP_HEADERS: ["a", "b" * 200]}
        yield Fact(
            seq, 7, e.PLAYHEAD_EXCHANGE_REQUEST, b"", b"", id, None, asked, content, INSTANCE, seq
        )
        yield Fact(
            seq,
            7,
            e.PLAYHEAD_EXCHANGE_DATA,
            exchange=id,
            delivery=Delivery(number, 0),
            body=Content.chunk(tail),
            instance=INSTANCE,
            seq=seq + 1,
        )
        ended = {a.PLAYHEAD_END_HOW: "complete"}
        end = Fact(seq, 7, e.PLAYHEAD_EXCHANGE_END, b"", b"", id, None, ended, None, INSTANCE, seq + 2)
        yield end
        body = whole[:size_bytes]  # the next one extends the beginning of this one


def read(data: bytes) -> Gathered:
    return gather(data, scan_whole(data))


def held_bytes(make: Callable[[], object]) -> tuple[int, int]:
    """What ``make`` and its result take of memory: what stays, and the most on the way."""
    tracemalloc.start()
    try:
        kept = make()
        now, most = tracemalloc.get_traced_memory()
        del kept
        return now, most
    finally:
        tracemalloc.stop()


def test_memory_of_a_tape_follows_from_how_much_is_on_it_and_not_from_how_large_it_is():
    small, large = (frames_of([Header(INSTANCE, 5), *calls(CALLS, size)]) for size in (10, 64 << 10))
    assert len(large) > 30 * MIB
    (few, _), (held, most) = (held_bytes(lambda data=data: read(data)) for data in (small, large))
    assert held < few + 64 * 1024, "it holds bodies"
    assert most < few + MIB, "it held more than one body at a time"
    assert held < CALLS * 1024


def test_reading_all_of_it_keeps_the_latest_only():
    facts = list(calls(CALLS, 64 << 10))
    data = frames_of([Header(INSTANCE, 5), *facts])
    contents = [fact.body for fact in facts if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST]
    del facts

    def all_of_it() -> object:
        [tape] = read(data).tapes
        for number, content in enumerate(contents):
            assert content is not None
            assert digest_of(tape.read(Content(content.digest, content.size))) == content.digest
            exchange = tape.exchange(ExchangeId(7, "http", number))
            assert exchange is not None
            assert len(exchange.parts) == 1
        return tape

    sizes = sum(content.size for content in contents if content is not None)
    assert sizes > 3 * indexed_tapes.KEPT_BYTES
    held, _ = held_bytes(all_of_it)
    assert held < indexed_tapes.KEPT_BYTES + indexed_tapes.KEPT_EXCHANGES * 2 * (64 << 10) + 2 * MIB


def test_a_chain_is_resolved_without_what_is_kept(monkeypatch: pytest.MonkeyPatch):
    facts = list(calls(40, 100))
    whole = MemoryTape(facts)
    monkeypatch.setattr(indexed_tapes, "KEPT_BYTES", 0)
    [tape] = read(frames_of([Header(INSTANCE, 5), *facts])).tapes
    for fact in random.Random(7).sample(facts, len(facts)):
        if fact.body is not None:
            assert tape.read(fact.body) == whole.read(fact.body)


def test_a_file_in_any_order_is_the_same_tape():
    facts = list(calls(20, 100))
    mixed = random.Random(3).sample(facts, len(facts))
    records: list[Record] = [Header(INSTANCE, 5, resource={"service.name": "x"}), *mixed, *mixed[:9]]
    found = read(frames_of([*records, SpanRecord(b"one"), SpanRecord(b"two")]))
    [tape] = found.tapes
    memory = MemoryTape(facts)
    assert list(tape.facts()) == list(memory.facts()) == facts
    assert tape.exchanges() == memory.exchanges()
    assert [tape.exchange(id) for id in tape.exchange_ids()] == list(memory.exchanges().values())
    assert list(tape.facts(30)) == facts[31:]
    assert list(tape.named(e.PLAYHEAD_EXCHANGE_END)) == facts[2::3]
    assert (tape.fact(30), tape.fact(60), len(tape), tape.last_seq) == (facts[30], None, 60, 59)
    assert tape.instance == INSTANCE
    assert list(found.spans) == [b"one", b"two"]
    assert found.resources == {INSTANCE: {"service.name": "x"}}
