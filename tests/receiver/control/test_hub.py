"""The hub: who is connected, who holds a run, which orders are on their way."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from playhead_core.control.messages import (
    AgentReport,
    CheckpointMade,
    ControlOrder,
    Halted,
    Hold,
    OrderProblem,
    OrdersWanted,
)
from playhead_receiver.control import hub as hubs
from playhead_receiver.control.hub import HeldByOther, Hub, NotControlled, NotDone, TooMany

RUN = "ab" * 16
ONE = "01" * 16


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def report(number: int = 1, **said: Any) -> AgentReport:
    return AgentReport(**{"instance": ONE, "trace_id": RUN, "number": number, **said})


def order(what: Any, by: str = "anna", **said: Any) -> ControlOrder:
    return ControlOrder(
        **{"number": 0, "what": what, "trace_id": RUN, "by": by, "lease_s": 60.0, **said}
    )


def halted(number: int = 1, body: str = "{}", trace_id: str = RUN) -> Halted:
    return Halted(number, trace_id, "1/http/0", "http", "GET /", "1", "pause", number, len(body), body)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hub(clock: Clock) -> Hub:
    hub = Hub(clock)
    hub.reported(report())
    return hub


def test_an_order_is_sent_until_it_is_taken(hub: Hub):
    given = hub.give(order("pause"), ())
    for _ in range(2):
        (sent,) = hub.orders_for(OrdersWanted(ONE)).orders
        assert (sent.number, sent.what) == (given, "pause")
    assert not hub.taken(given, RUN, ())
    assert hub.orders_for(OrdersWanted(ONE, given)).orders == []
    hub.reported(report(2, taken=given))
    assert hub.taken(given, RUN, ())
    assert hub.orders_for(OrdersWanted(ONE)).orders == []


def test_an_order_that_could_not_be_carried_out_says_why(hub: Hub):
    given = hub.give(order("reject"), ())
    hub.reported(report(2, taken=given, problems=[OrderProblem(given, "nothing waits")]))
    with pytest.raises(NotDone, match="nothing waits"):
        hub.taken(given, RUN, ())


def test_another_operator_is_refused_until_the_lease_is_over(hub: Hub, clock: Clock):
    hub.give(order("pause"), ())
    with pytest.raises(HeldByOther, match="anna holds this run for 60 s more"):
        hub.give(order("continue", "bob"), ())
    clock.now_s += 10
    hub.reported(report(2))
    hub.give(order("renew"), ())
    clock.now_s += 55
    hub.reported(report(3))
    with pytest.raises(HeldByOther):
        hub.give(order("pause", "bob"), ())
    clock.now_s += 10
    hub.reported(report(4))
    assert hub.controlled(RUN, ()).lease is None
    hub.give(order("pause", "bob"), ())


def test_who_lets_a_run_go_holds_it_no_longer(hub: Hub):
    hub.give(order("pause"), ())
    hub.give(order("continue", halt=3), ())
    lease = hub.controlled(RUN, ()).lease
    assert lease is not None and lease.paused
    hub.give(order("continue"), ())
    assert hub.controlled(RUN, ()).lease is None
    hub.give(order("rules", rules=["pause error"]), ())
    hub.give(order("continue"), ())
    lease = hub.controlled(RUN, ()).lease
    assert lease is not None and (lease.paused, lease.rules) == (False, ["pause error"])


def test_a_receiver_that_begins_anew_learns_who_holds_what(clock: Clock):
    hub = Hub(clock)
    assert not hub.orders_for(OrdersWanted(ONE)).known
    hold = Hold(RUN, "anna", 30.0, True, ["pause error"])
    hub.reported(report(7, holds=[hold], halted=[halted()]))
    found = hub.controlled(RUN, ())
    assert found.lease is not None
    assert (found.lease.holder, found.lease.left_s, found.lease.paused) == ("anna", 30.0, True)
    assert [one.number for _, one in found.halted] == [1]
    with pytest.raises(HeldByOther):
        hub.give(order("pause", "bob"), ())
    # What the agent says does not make a lease longer that the receiver knows.
    hub.reported(report(8, holds=[msgspec.structs.replace(hold, lease_s=1e9)]))
    assert hub.controlled(RUN, ()).lease == found.lease


def test_a_run_is_found_by_its_process_by_the_store_and_by_what_waits(hub: Hub):
    other = "cd" * 16
    with pytest.raises(NotControlled):
        hub.give(order("pause", trace_id=other), ())
    hub.give(order("pause", trace_id=other), [ONE])
    hub.reported(report(2, halted=[halted(trace_id=other)]))
    assert hub.controlled(other, ()).processes
    # All that a process does is its own run's.
    assert [one.trace_id for _, one in hub.controlled(RUN, ()).halted] == [other]


def test_a_silent_process_and_one_that_has_ended_are_gone(hub: Hub, clock: Clock):
    clock.now_s += hubs.SILENT_S + 1
    assert hub.controlled(RUN, ()).processes == []
    with pytest.raises(NotControlled):
        hub.give(order("pause"), ())
    hub.reported(report(2))
    assert hub.controlled(RUN, ()).processes
    hub.reported(report(3, ends=True))
    assert hub.controlled(RUN, ()).processes == []
    assert not hub.orders_for(OrdersWanted(ONE)).known


def test_an_old_report_does_not_count(hub: Hub):
    hub.reported(report(5, halted=[halted()]))
    hub.reported(report(4))
    assert hub.controlled(RUN, ()).halted


def test_only_news_wake_those_who_wait(hub: Hub):
    woken: list[None] = []
    end = hub.watch(lambda: woken.append(None))
    hub.reported(report(2))
    hub.reported(report(3, holds=[Hold(RUN, "anna", 30.0, True)]))
    hub.reported(report(4, holds=[Hold(RUN, "anna", 29.0, True)]))
    assert len(woken) == 1
    hub.reported(report(5, halted=[halted()]))
    assert len(woken) == 2
    end()
    hub.give(order("pause"), ())
    assert len(woken) == 2


def test_what_a_sender_may_fill_is_bounded(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hubs, "KEPT_BYTES", 100)
    hub.reported(report(2, halted=[halted(body="x" * 60), halted(2, body="x" * 60)]))
    bodies = [one.body for _, one in hub.controlled(RUN, ()).halted]
    assert bodies == [None, None]
    monkeypatch.setattr(hubs, "MOST_AGENTS", 1)
    with pytest.raises(TooMany):
        hub.reported(report(instance="02" * 16))
    monkeypatch.setattr(hubs, "MOST_ORDERS", 2)
    for _ in range(2):
        hub.give(order("renew"), ())
    with pytest.raises(TooMany):
        hub.give(order("renew"), ())


def test_orders_come_in_answers_that_an_agent_can_read(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hubs, "MOST_ORDERS_BYTES", 1000)
    given = [hub.give(order("reject", said="x" * 300), ()) for _ in range(5)]
    found: list[int] = []
    while orders := hub.orders_for(OrdersWanted(ONE, max(found, default=0))).orders:
        assert 1 <= len(orders) < 5
        found += [one.number for one in orders]
    assert found == given


def test_a_checkpoint_is_ordered_also_where_another_holds_the_run(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("playhead_receiver.control.hub.MOST_MADE", 1)
    hub.give(order("pause"), ())
    given = hub.give(order("checkpoint", by="bob"), ())
    assert hub.made(given) is None
    before = hub.revision
    hub.reported(report(2, taken=given, made=[CheckpointMade(given, 7)]))
    assert hub.revision > before
    assert hub.made(given) == (ONE, 7)
    later = hub.give(order("checkpoint", by="bob"), ())
    hub.reported(report(3, made=[CheckpointMade(later, 9)], ends=True))
    assert (hub.made(given), hub.made(later)) == (None, (ONE, 9))
    lease = hub.controlled(RUN, ()).lease
    assert lease is not None and lease.holder == "anna"
