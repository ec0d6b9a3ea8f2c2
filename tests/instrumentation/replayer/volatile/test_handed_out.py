"""What a replay has handed out is kept within bounds, whoever tells it."""

from __future__ import annotations

import random
import sys
import threading
import tracemalloc

from playhead_instrumentation.replayer.volatile import HandedOut
from playhead_instrumentation.replayer.volatile.ranges import MOST, Stretches

START_NS = 1_795_341_600_000_000_000


def test_reads_that_follow_each_other_are_one_stretch():
    times = Stretches()
    for number in range(100_000):
        times.note(START_NS + number * 1000)
    times.note(START_NS + 10**9)
    assert times.whole == (START_NS, START_NS + 10**9)
    assert times.holds(START_NS + 5, START_NS + 6)
    assert not times.holds(START_NS - 5, START_NS)
    assert not times.holds(START_NS + 10**8, START_NS + 10**9)
    assert times.holds(START_NS + 10**9, START_NS + 10**9 + 1)
    assert not times.holds(START_NS + 10**9 + 1, START_NS + 10**10)


def test_stretches_are_joined_where_there_are_too_many():
    draw = random.Random(1)
    times, read = Stretches(), [draw.randrange(10**14) for _ in range(20_000)]
    for time_ns in read:
        times.note(time_ns)
    assert len(times._starts) <= MOST  # pyright: ignore[reportPrivateUsage]
    assert times._starts == sorted(times._starts)  # pyright: ignore[reportPrivateUsage]
    assert all(times.holds(time_ns, time_ns + 1) for time_ns in read)
    assert times.whole == (min(read), max(read))


def test_a_time_of_day_is_looked_for_on_each_day():
    times = Stretches()
    hour = 3_600_000_000_000
    times.note(23 * hour)
    times.note(49 * hour)
    assert times.holds_of_day(23 * hour, 23 * hour + 1)
    assert times.holds_of_day(hour, hour + 1)
    assert times.holds_of_day(-hour, -hour + 1)
    assert times.holds_of_day(25 * hour, 25 * hour + 1)
    assert not times.holds_of_day(2 * hour, 3 * hour)


def test_memory_is_bounded():
    handed_out = HandedOut(most_values=1000)
    tracemalloc.start()
    try:
        sizes: list[int] = []
        for turn in range(4):
            for number in range(2000):
                handed_out.note_bytes(random.randbytes(16))
                handed_out.note_bytes(random.randbytes(3000))
                handed_out.note_number(random.random())
                handed_out.note_text(f"name_{turn}_{number:08}")
                handed_out.note_time(START_NS + (turn * 2000 + number) * 10**8)
                handed_out.note_count(number * 10**9)
            handed_out.settle()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[-1] < sizes[1] * 1.2 + 200_000
    assert sizes[-1] < 12 << 20


def test_a_draw_of_no_use_is_not_kept():
    handed_out = HandedOut()
    handed_out.note_bytes(bytes(3))
    handed_out.note_bytes(bytes(5000))
    handed_out.note_number((1 << 31) + 5)
    handed_out.note_number(-(1 << 40))
    handed_out.note_number(float("nan"))
    handed_out.note_number(True)
    handed_out.settle()
    assert handed_out.beginning_with(bytes(4)) == []
    assert handed_out.ending_with(((1 << 31) + 5).to_bytes(4, "big")) != []
    assert not handed_out.has_float(float("nan"))


def test_any_thread_may_tell():
    handed_out = HandedOut(most_values=100)
    errors: list[BaseException] = []

    def tell(seed: int) -> None:
        draw = random.Random(seed)
        try:
            for number in range(20_000):
                handed_out.note_time(START_NS + number * 1000 + seed)
                handed_out.note_bytes(draw.randbytes(8))
                if number % 1000 == 0:
                    handed_out.settle()
                    handed_out.has_duration(10**6, 500)
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=tell, args=(seed,)) for seed in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    handed_out.settle()
    assert handed_out.has_time(START_NS, START_NS + 1)
    assert handed_out.has_time(START_NS + 19_999_000, START_NS + 20_000_000)


def test_who_tells_never_waits():
    handed_out = HandedOut()
    done = threading.Event()

    def tell() -> None:
        for number in range(20_000):
            handed_out.note_time(START_NS + number)
            handed_out.note_bytes(number.to_bytes(8, "big"))
        done.set()

    with handed_out._lock:  # pyright: ignore[reportPrivateUsage]
        thread = threading.Thread(target=tell)
        thread.start()
        assert done.wait(30)
    thread.join()
    handed_out.settle()
    assert handed_out.has_time(START_NS + 19_999, START_NS + 20_000)
