"""One recorded value stands for one value now, over the whole process."""

from __future__ import annotations

import os
import threading
import uuid

from support.tapes.volatile import Replay, request

from playhead_core.normalize import Pair, Unlike
from playhead_instrumentation.replayer.volatile import HandedOut, Proposal, Volatile

ONE, OTHER = "0d6f0a1e-5b1c-4c63-9a53-0f3f6b7f3c11", "7d444840-9dc0-41d1-b245-5ffdce74fad2"


def two(replay: Replay) -> tuple[str, str]:
    first, second = (str(uuid.UUID(bytes=replay.draws(16, seed), version=4)) for seed in (1, 2))
    return first, second


def test_values_that_are_swapped_later():
    replay = Replay()
    now, other = two(replay)
    replay.accepts({"a": ONE, "b": OTHER}, {"a": now, "b": other})
    replay.accepts({"a": OTHER, "b": ONE}, {"a": other, "b": now})
    found = replay.refuses({"a": ONE}, {"a": other})
    assert found.path == "volatile values"
    assert found.why == f"recorded {ONE} stands for {now}, and here for {other}"


def test_values_that_are_swapped_in_one_request():
    replay = Replay()
    now, other = two(replay)
    found = replay.refuses({"a": ONE, "b": ONE}, {"a": now, "b": other})
    assert found.why == f"recorded {ONE} stands for {now}, and here for {other}"
    found = replay.refuses({"a": ONE, "b": OTHER}, {"a": now, "b": now})
    assert found.why == f"{now} stands in the place of recorded {ONE}, and here of {OTHER}"


def test_a_value_is_the_same_however_it_is_written():
    replay = Replay()
    now, other = two(replay)
    replay.accepts(ONE, now)
    replay.accepts(ONE.replace("-", ""), now.replace("-", ""))
    replay.accepts(ONE.upper(), now.upper())
    replay.refuses(ONE.replace("-", ""), other.replace("-", ""))
    assert replay.volatile.translated(f"{ONE} {ONE.upper()}".encode()) == f"{now} {now.upper()}".encode()


def test_a_proposal_changes_nothing_until_it_is_accepted():
    replay = Replay()
    now, other = two(replay)
    proposed = replay.compare(ONE, now), replay.compare(ONE, other)
    first, second = proposed
    assert isinstance(first, Proposal)
    assert isinstance(second, Proposal)
    assert len(replay.volatile) == 0
    assert replay.volatile.translated(ONE.encode()) == ONE.encode()
    assert replay.volatile.accept(second) is None
    broken = replay.volatile.accept(first)
    assert isinstance(broken, Unlike)
    assert broken.why == f"recorded {ONE} stands for {other}, and here for {now}"
    assert replay.volatile.pairs() == [Pair(ONE, other, "uuid:4")]


def test_instants_and_durations_are_not_one_to_one():
    replay = Replay()
    replay.reads(3.0, 3.000001, 5)
    one, later = "2026-11-22T10:00:07.123456", "2026-11-22T10:00:03.000000"
    replay.accepts({"a": one, "b": one}, {"a": later, "b": "2026-11-22T10:00:03.000001"})
    replay.accepts({"a": one, "b": "2026-11-22T10:00:08.000000"}, {"a": later, "b": later})
    assert len(replay.volatile) == 0


def test_the_pairs_used_last_are_kept():
    handed_out = HandedOut()
    volatile = Volatile(handed_out, most_pairs=10)

    def accept(number: int) -> None:
        handed_out.note_bytes(bytes([number]) * 8)
        found = volatile.compare(request(f"{number:016}"), request((bytes([number]) * 8).hex()))
        assert isinstance(found, Proposal), found
        assert volatile.accept(found) is None

    for number in (1, 2, 3, 4, 1, 5, 6, 7, 8, 9, 10, 11, 12):
        accept(number + 100)
    assert [pair.recorded[-3:] for pair in volatile.pairs()] == [
        *("104", "101", "105", "106", "107", "108", "109", "110", "111", "112")
    ]
    assert volatile.translated(b"%016d %016d" % (103, 104)) == b"%016d %s" % (103, b"68" * 8)


def test_threads_that_accept_at_once_agree():
    replay = Replay()
    drawn = [replay.draws(16, seed).hex() for seed in range(8)]
    ready = threading.Barrier(8)
    done: list[str] = []

    def accept(now: str) -> None:
        ready.wait()
        for number in range(50):
            found = replay.compare(f"{number:032x}", now if number == 7 else replay_of[number])
            if isinstance(found, Proposal) and replay.volatile.accept(found) is None and number == 7:
                done.append(now)

    replay_of = {number: replay.draws(16, 100 + number).hex() for number in range(50)}
    threads = [threading.Thread(target=accept, args=(now,)) for now in drawn]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(done) == 1
    assert len(replay.volatile) == 50


def test_a_forked_child_goes_on():
    replay = Replay()
    now, _ = two(replay)
    held, thread_holds = threading.Event(), threading.Event()

    def hold() -> None:
        with replay.volatile._lock, replay.handed_out._lock:  # pyright: ignore[reportPrivateUsage]
            thread_holds.set()
            held.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    assert thread_holds.wait(30)
    child = os.fork()
    if not child:
        status = 1
        try:
            replay.accepts(ONE, now)
            status = 0
        finally:
            os._exit(status)
    held.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
