"""What ends by time is put on the tape as it ended: whose, and when."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from playhead_core.facts import Delivery, ExchangeId, Fact
from playhead_core.tape.coalesced import ends_of
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.patches import Patches
from playhead_instrumentation.recorder.coalescing import Coalescing
from playhead_instrumentation.scheduler.gates.tape import TapeGate
from playhead_instrumentation.scheduler.hooks.timers import watch_clock
from playhead_instrumentation.scheduler.permit_waits import Waiting
from playhead_instrumentation.scheduler.threads import is_of_program
from playhead_instrumentation.scheduler.timer_ends import Wakes
from playhead_semconv import attributes as a
from playhead_semconv import events as e

WORKER = lanes.Lane("worker")
LANE = WORKER.hash


class Sink:
    """Keeps what is appended."""

    instance = b"i" * 16

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def append(self, fact: Fact) -> int:
        self.facts.append(fact)
        return len(self.facts) - 1


def ended(sink: Any, *ends: tuple[ExchangeId, Delivery | None], kept: bool = True) -> list[str]:
    """Wakes of a recording that end so; the lanes that were declared for them."""
    declared: list[str] = []
    none: Any = None
    wakes = Wakes(sink, none, none, lambda lane: declared.append(lane.name), kept=kept)
    for id, at in ends:
        wakes.over(WORKER, id, at)
    return declared


SLEEP = ExchangeId(LANE, "sleep", 0)


def test_an_end_by_time_says_whose_it_is_and_when_it_was():
    sink = Sink()
    assert ended(sink, (SLEEP, Delivery(4, 1))) == ["worker"]
    (fact,) = sink.facts
    assert (fact.name, fact.lane, fact.exchange, fact.delivery) == (
        e.PLAYHEAD_WAKE,
        LANE,
        SLEEP,
        Delivery(4, 1),
    )
    assert fact.body is None and fact.time_ns > 0


def test_many_in_a_row_are_one_fact_and_one_without_a_place_stands_alone():
    sink = Sink()
    ids = [ExchangeId(LANE, "sleep", number) for number in range(4)]
    ends = [(id, Delivery(number, 0)) for number, id in enumerate(ids[:3])]
    held = Coalescing(sink)
    ended(held, *ends, (ids[3], None))
    held.flush()
    together, alone = sink.facts
    assert ends_of(together) == ends
    assert (alone.exchange, alone.delivery) == (ids[3], None)


def test_where_ends_are_not_kept_nothing_is_said():
    sink = Sink()
    assert ended(sink, (SLEEP, Delivery(1, 0)), kept=False) == []
    assert sink.facts == []


def test_a_turn_that_was_lost_says_whose_and_how():
    sink, none = Sink(), None
    taken: Any = sink
    gate: Any = none
    Wakes(taken, gate, gate, lambda lane: None).permit_lost(1 << 60, "blocks")
    (fact,) = sink.facts
    assert fact.name == e.PLAYHEAD_TURN_LOST
    assert fact.attributes == {
        a.PLAYHEAD_TURN_THREAD: f"thread {1 << 60}",
        a.PLAYHEAD_TURN_HOW: "blocks",
    }
    assert fact.time_ns > 0


@pytest.mark.parametrize(
    ("module", "qualname", "name", "own"),
    [
        ("agent", "work", "worker", True),
        ("opentelemetry.sdk.trace.export", "worker", "exporter", False),
        ("grpc._cython.cygrpc", "PollerCompletionQueue._poll_wrapper", "poller", False),
        ("grpc._cython.cygrpc", "serve", "server", True),
        ("agent", "work", f"{lanes.OWN_THREADS}x", False),
    ],
)
def test_threads_of_exporters_are_not_the_programs(module: str, qualname: str, name: str, own: bool):
    def target() -> None:
        """What the thread runs."""

    target.__module__, target.__qualname__ = module, qualname
    assert is_of_program(threading.Thread(target=target, name=name)) is own


def test_a_thread_without_a_target_is_whose_its_class_is():
    class Exporter(threading.Thread):
        """As an SDK makes it."""

    class Agent(threading.Thread):
        """As a program makes it."""

    Exporter.__module__ = "opentelemetry.sdk.metrics"
    assert not is_of_program(Exporter(name="exporter"))
    assert is_of_program(Agent(name="agent"))


def opened(goes_on: bool) -> list[tuple[bool, Delivery | None]]:
    """Two sleeps of a tape that ended the first and the third, and one after it is forgotten."""
    lane, none = lanes.Lane("sleeper"), None
    sink: Any = Sink()
    gate: Any = none
    dues = {ExchangeId(lane.hash, "sleep", number): Delivery(4 + number, 0) for number in (0, 2)}
    wakes = Wakes(sink, gate, gate, lambda lane: None, dues, goes_on=goes_on)
    found = [wakes.open("sleep", lane, 1.0) for _ in range(2)]
    wakes.forget()
    found.append(wakes.open("sleep", lane, 1.0))
    return [(wake.live, wake.due) for wake in found]


def test_in_a_fork_time_passes_in_the_world_for_what_its_tape_does_not_end():
    assert opened(goes_on=True) == [(False, Delivery(4, 0)), (True, None), (True, None)]


def test_in_a_replay_no_time_passes_for_what_its_tape_does_not_end():
    expected = [(False, Delivery(4, 0)), (False, None), (False, Delivery(6, 0))]
    assert opened(goes_on=False) == expected


class ClosesMeanwhile(TapeGate):
    """Is closed as soon as somebody waits."""

    def enter(self, waiter: Waiting) -> bool:
        at_once = super().enter(waiter)
        self.close()
        return at_once


def test_who_still_sleeps_when_a_replay_ends_is_not_over_and_no_end_is_said():
    recorded, none = Sink(), None
    sink: Any = recorded
    reads: Any = none
    wakes = Wakes(sink, ClosesMeanwhile([]), reads, lambda lane: None, {})
    assert not wakes.open("sleep", lanes.Lane("sleeper"), 3600.0).passed()
    assert recorded.facts == []


def test_every_clock_that_is_replaced_is_named():
    patches = Patches()
    watch_clock(patches)
    try:
        clocks = ["threading._time", "queue.time", "concurrent.futures.time"]
        assert (patches.patched(), patches.unpatched()) == (clocks, [])
    finally:
        patches.undo()
