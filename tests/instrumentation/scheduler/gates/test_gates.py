"""Gates that hold back: who enters first, whose wait ends with time, who is cancelled meanwhile."""

import threading

import pytest

from playhead_core.facts import Delivery
from playhead_instrumentation.scheduler.gates.strict import StrictGate
from playhead_instrumentation.scheduler.gates.tape import TapeGate


@pytest.fixture
def closing():
    gates = []
    yield gates.append
    for gate in gates:
        gate.close()


def _in_threads(waits):
    threads = [threading.Thread(target=wait, daemon=True) for wait in waits]
    for thread in threads:
        thread.start()
    return threads


def test_of_waits_without_an_end_on_the_tape_the_shortest_ends_first(closing):
    gate = TapeGate([])
    closing(gate)
    ended, seen = [], threading.Event()

    def wait(after_s):
        gate.never(None, after_s).wait()
        ended.append(after_s)
        seen.set()

    threads = _in_threads([lambda: wait(60.0), lambda: wait(0.3)])
    gate.ledger.waits()
    assert seen.wait(30)
    gate.close()
    for thread in threads:
        thread.join(30)
    assert ended == [0.3, 60.0]
    assert gate.moved == 1


def test_who_waits_in_vain_and_is_cancelled_does_not_disturb_who_was_let_through(closing):
    gate = TapeGate([Delivery(1, 0), Delivery(1, 1)])
    closing(gate)
    let_through, follower = gate.arrive(Delivery(1, 0)), gate.arrive(Delivery(1, 1))
    vain = gate.never()
    for waiter in (let_through, follower, vain):
        waiter.opened.acquire()
        assert not gate.enter(waiter)
    gate.ledger.waits()
    assert [waiter.came for waiter in (let_through, follower, vain)] == [True, False, False]
    gate.leave(vain)
    assert not follower.came
    gate.went_on(let_through)
    assert follower.came


def test_in_a_strict_recording_nobody_overtakes_who_has_arrived(closing):
    gate = StrictGate()
    closing(gate)
    entered = {}
    arrived = threading.Event()

    def wait():
        waiter = gate.arrive(None)
        arrived.set()
        entered["first"] = waiter.wait()

    (thread,) = _in_threads([wait])
    assert arrived.wait(30)
    while not gate.anybody() and "first" not in entered:
        pass
    entered["second"] = gate.arrive(None).wait()
    gate.ledger.waits()
    thread.join(30)
    assert entered == {"first": Delivery(1, 0), "second": Delivery(2, 0)}


class Interrupted(Exception):
    """What the handler of a signal raises."""


def test_a_thread_that_is_interrupted_before_it_blocks_leaves_the_gate(closing, monkeypatch):
    gate = TapeGate([Delivery(1, 0)])
    closing(gate)

    def interrupted(until=None):
        raise Interrupted

    monkeypatch.setattr(gate.ledger, "waits", interrupted)
    with pytest.raises(Interrupted):
        gate.never().wait()
    assert not gate.anybody()
