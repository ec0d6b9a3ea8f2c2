"""Polling loops: one fact for many permits, with the same replay."""

import os
import threading

import msgspec
import pytest
from support.long import long
from support.observed.files import Ran

from playhead_core.errors import TapeError
from playhead_core.facts import Content, Delivery, ExchangeId, Fact, Fidelity
from playhead_core.tape.coalesced import count_of_reads, ends_of, reads, values_of, wakes
from playhead_instrumentation.recorder import coalescing
from playhead_instrumentation.recorder.coalescing import Coalescing
from playhead_semconv import attributes as a
from playhead_semconv import events as e

POLLING = """
import asyncio, queue, threading, time
from playhead_instrumentation.recorder import coalescing
coalescing.LONGEST_NS = 60_000_000_000  # a busy machine takes longer for a permit
seen, permits = [], 0
waiting = queue.Queue()
for _ in range(40):
    try:
        waiting.get(timeout=0.01)
    except queue.Empty:
        seen.append("nothing")
event = threading.Event()
for _ in range(40):
    event.wait(0.005)
end = time.monotonic() + 0.3
while time.monotonic() < end:
    time.sleep(0.01)
    seen.append(round(time.monotonic(), 6))
    permits += 1

def polls():
    for _ in range(30):
        time.sleep(0.005)
    waiting.put(time.perf_counter())

thread = threading.Thread(target=polls)
thread.start()
while True:
    try:
        seen.append(waiting.get(timeout=0.02))
        break
    except queue.Empty:
        permits += 1
thread.join()

async def main():
    never = asyncio.Event()
    for _ in range(30):
        try:
            await asyncio.wait_for(never.wait(), 0.005)
        except asyncio.TimeoutError:
            seen.append(time.time())
        await asyncio.sleep(0.002)

asyncio.run(main())
print(permits, seen)
"""


class Kept(list):
    """A sink in memory."""

    instance = b"i" * 16

    def append(self, fact):
        super().append(fact)
        return len(self)


def value(number):
    return msgspec.msgpack.encode(number)


def end(ordinal, batch, kind="sleep"):
    return ExchangeId(7, kind, ordinal), Delivery(batch, 0)


def test_what_comes_many_times_in_a_row_is_one_fact():
    kept = Kept()
    held = Coalescing(kept)
    for permit in range(5):
        held.read(7, "clock/waited", value(permit + 0.5))
        held.wake(*end(2 * permit, permit + 1))
        held.read(7, "clock/time.time", value(permit))
    held.read(8, "clock/waited", value(99))
    assert kept == []
    request = Fact(1, 7, e.PLAYHEAD_EXCHANGE_REQUEST)
    assert held.append(request) == 5
    waited, slept, asked, other, last = kept
    assert last is request
    assert [fact.name for fact in kept[:4]] == [
        *(e.PLAYHEAD_READ, e.PLAYHEAD_WAKE),
        *(e.PLAYHEAD_READ, e.PLAYHEAD_READ),
    ]
    assert [msgspec.msgpack.decode(one) for one in values_of(waited, waited.body.inline)] == [
        *(0.5, 1.5, 2.5, 3.5, 4.5)
    ]
    assert count_of_reads(asked) == 5
    assert ends_of(slept) == [end(2 * permit, permit + 1) for permit in range(5)]
    assert (slept.exchange, slept.delivery) == end(0, 1)
    after = slept.attributes[a.PLAYHEAD_WAKE_AFTER_NS]
    assert after[0] == 0 and sorted(after) == after and len(after) == 5
    assert other.attributes == {a.PLAYHEAD_READ_KIND: "clock/waited"}
    assert (other.body.inline, count_of_reads(other)) == (value(99), 1)


def test_what_is_held_is_bounded_in_number_and_in_time(monkeypatch):
    kept = Kept()
    held = Coalescing(kept)
    for permit in range(coalescing.MOST + 1):
        held.read(7, "clock/waited", value(permit))
    assert [count_of_reads(fact) for fact in kept] == [coalescing.MOST]
    now = [0]
    monkeypatch.setattr(coalescing, "_now_ns", lambda: now[0])
    held.flush()
    kept.clear()
    for now[0] in (10, 20, 10 + coalescing.LONGEST_NS, 5, 6):  # the clock is set back, too
        held.wake(*end(now[0], 1))
    held.flush()
    assert [len(ends_of(fact)) for fact in kept] == [2, 1, 2]


def test_nothing_is_lost_between_threads():
    kept = Kept()
    held = Coalescing(kept)

    def work(lane):
        for permit in range(3000):
            held.read(lane, "clock/time.time", value(permit))
            if permit % 100 == 0:
                held.append(Fact(1, lane, e.PLAYHEAD_EFFECT))

    threads = [threading.Thread(target=work, args=(lane,)) for lane in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held.flush()
    for lane in range(1, 5):
        facts = [fact for fact in kept if fact.lane == lane and fact.name == e.PLAYHEAD_READ]
        found = [one for fact in facts for one in values_of(fact, fact.body.inline)]
        assert [msgspec.msgpack.decode(one) for one in found] == list(range(3000))


def test_the_child_of_a_fork_says_nothing_for_its_parent():
    kept = Kept()
    held = Coalescing(kept)
    held.read(7, "clock/waited", value(1))
    pid = os.fork()
    if pid == 0:
        held.flush()
        os._exit(len(kept))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    held.flush()
    assert len(kept) == 1


@pytest.mark.parametrize(
    "body", [b"", b"\\xc1", msgspec.msgpack.encode({"no": "list"}), msgspec.msgpack.encode([1, 2])[:2]]
)
def test_damaged_values_are_refused(body):
    fact = reads(7, "clock/waited", [1, 2], [value(1), value(2)])
    fact = msgspec.structs.replace(fact, body=Content(b"", len(body), body))
    with pytest.raises(TapeError, match="damaged"):
        values_of(fact, body)


def test_damaged_ends_are_refused():
    fact = wakes([1, 2], [end(0, 1), end(1, 2)])
    for name in (a.PLAYHEAD_WAKE_BATCHES, a.PLAYHEAD_WAKE_ORDERS):
        for bad in ([1], "no", None, [1, "x"]):
            damaged = msgspec.structs.replace(fact, attributes={**fact.attributes, name: bad})
            with pytest.raises(TapeError, match="damaged"):
                ends_of(damaged)


@pytest.mark.parametrize("level", [long("causal"), "strict"])
def test_a_program_that_polls_writes_few_facts_and_is_replayed(level, tmp_path):
    ran = Ran(tmp_path, POLLING, PLAYHEAD_LEVEL=level)
    assert "playhead could not" not in ran.done.stderr
    permits = sum(len(ends_of(fact)) for fact in ran.tape.named(e.PLAYHEAD_WAKE))
    while_waiting = int(ran.done.stdout.split()[0])
    assert permits >= 40 + 40 + 30 + 30 + 30 + while_waiting
    assert len(list(ran.tape.facts())) < permits / 2
    done, report = ran.again()
    assert (done.stdout, report.verdict) == (ran.done.stdout, "identical"), done.stderr
    assert set(report.reads["clock"]) == {Fidelity.EXACT}
