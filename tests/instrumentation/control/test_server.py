"""The control server: who waits, who may go, what time and rules do."""

from __future__ import annotations

import asyncio
import sys
import threading
from types import FrameType
from typing import Any

import pytest
from support.outside.halting import RUN, at_control_server, going
from support.starting.running import until

import playhead
from playhead_core.errors import AskRejected
from playhead_core.rerun.plans import Edit
from playhead_instrumentation.control import server as desks
from playhead_instrumentation.patching.unpatched import REAL
from playhead_semconv import attributes as a
from playhead_semconv import events as e


@playhead.tool
def look(at: Any) -> Any:
    return at


@playhead.tool
async def look_later(at: Any) -> Any:
    return at


@playhead.tool
def fails() -> None:
    raise ValueError("it fails")


def looks(*things: Any):
    return going(lambda: [look(one) for one in things])


def test_a_step_lets_one_go_and_one_may_be_let_go_before_it_comes():
    with at_control_server() as operator:
        operator.order("pause")
        assert operator.order("step") == ""  # nothing waits yet: the next one
        running = looks(1, 2, 3)
        (halted,) = operator.halted()
        assert (halted.body, halted.reason) == ('{"at":2}', "step")
        operator.order("step")
        until(lambda: operator.halted()[0].body == '{"at":3}', "the next waits")
        operator.order("continue")
        assert running.result(60) == [1, 2, 3]


def test_orders_that_fit_nothing_say_so():
    with at_control_server() as operator:
        operator.order("pause")
        assert operator.order("reject") == "no request is pending"
        first, second = looks(1), looks(2)
        waiting = operator.halted(2)
        assert operator.order("reject").startswith("2 requests are pending (")
        assert operator.order("continue", halt=99) == "no pending request has the number 99"
        assert operator.order("step", halt=99) == "no pending request has the number 99"
        assert operator.order("rules", rules=["nonsense"]).startswith("'nonsense' is not a rule")
        assert operator.order("continue", halt=waiting[1].number) == ""
        until(lambda: len(operator.control_server.halted()) == 1, "one goes")
        operator.order("continue")
        assert sorted([first.result(60), second.result(60)]) == [[1], [2]]


def test_an_answer_that_is_halted_is_named_and_a_step_lets_it_in():
    began, ends = threading.Event(), threading.Event()

    @playhead.tool
    def slow() -> int:
        began.set()
        ends.wait(60)
        return 1

    with at_control_server() as operator:
        running = going(lambda: [slow(), look(2)])
        assert began.wait(60)
        operator.order("pause")
        ends.set()
        (halted,) = operator.halted()
        assert halted.reason == "arrives"
        for number in (0, halted.number):
            said = operator.order("edit", halt=number, edits=[Edit("at", 9)])
            assert said.startswith(f"{halted.exchange} was already sent, so it cannot be edited")
            assert "playhead step RUN delivers the response" in said
        assert operator.order("step") == ""
        until(lambda: operator.halted()[0].body == '{"at":2}', "the next waits")
        assert operator.order("edit", edits=[Edit("at", 9)]) == ""
        operator.order("continue")
        assert running.result(60) == [1, 9]


def test_a_cancelled_task_waits_no_longer():
    async def program() -> None:
        task = asyncio.create_task(look_later(1))
        while not operator.control_server.halted():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with at_control_server() as operator:
        operator.order("pause")
        going(lambda: asyncio.run(program())).result(60)
        assert operator.control_server.halted() == []
        (release,) = operator.sink.named(e.PLAYHEAD_CONTROL_RELEASE)
        assert release.attributes[a.PLAYHEAD_CONTROL_ACTION] == "left"


def test_a_lease_that_is_over_lets_go():
    with at_control_server() as operator:
        operator.order("pause", lease_s=0.05)
        running = looks(1)
        operator.halted()
        until(lambda: operator.control_server.look() and running.done(), "it goes on")
        orders = operator.sink.named(e.PLAYHEAD_CONTROL_ORDER)
        assert [one.attributes[a.PLAYHEAD_CONTROL_ACTION] for one in orders] == ["pause", "expired"]
        assert not operator.control_server.watchful


@pytest.mark.parametrize("rule", ["stop lost", "pause tool=other"])
def test_a_lost_receiver_stops_where_it_was_told_so(rule: str, monkeypatch: pytest.MonkeyPatch):
    with at_control_server(rule) as operator:
        operator.control_server.heard_s = lambda: REAL.now_s() - 2 * desks.LOST_S
        operator.order("pause", lease_s=0.05)
        running = looks(1)
        operator.halted()
        until(lambda: operator.control_server.look() and running.done(), "it goes on")
        if rule == "stop lost":
            with pytest.raises(AskRejected, match="the receiver was lost"):
                running.result(60)
        else:
            assert running.result(60) == [1]
        orders = operator.sink.named(e.PLAYHEAD_CONTROL_ORDER)
        assert orders[-1].attributes[a.PLAYHEAD_CONTROL_ACTION] == "lost"


def test_what_a_rule_halts_is_rejected_where_nobody_can_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(desks, "LOST_S", 0.05)
    with at_control_server("tool=look") as operator:
        operator.control_server.heard_s = lambda: 0.0
        running = looks(1)
        operator.halted()
        until(lambda: operator.control_server.look() and running.done(), "it is rejected")
        with pytest.raises(AskRejected, match="tool=look waits for an operator: the receiver is lost"):
            running.result(60)


def test_rules_of_an_operator_hold_as_long_as_the_lease():
    with at_control_server() as operator:
        operator.order("rules", rules=["pause steps>1"], lease_s=0.2)
        assert operator.control_server.watchful
        running = looks(1, 2)
        (halted,) = operator.halted()
        assert (halted.reason, halted.body) == ("steps>1", '{"at":2}')
        until(lambda: operator.control_server.look() and running.done(), "it goes on")
        assert not operator.control_server.watchful


def test_a_pause_at_a_sum_halts_once_and_a_stop_always():
    with at_control_server("steps>1") as operator:
        running = looks(1, 2, 3)
        operator.halted()
        operator.order("continue")
        assert running.result(60) == [1, 2, 3]
    with at_control_server("stop steps>1"):
        for _ in range(2):
            with pytest.raises(AskRejected, match="the rule stop steps>1 applies"):
                looks(1, 2).result(60)


def test_errors_and_loops_halt():
    with at_control_server("error", "loop") as operator:

        def program() -> None:
            with pytest.raises(ValueError):
                fails()
            for _ in range(4):
                look("same")

        running = going(program)
        (halted,) = operator.halted()
        assert halted.reason == "error"
        operator.order("continue")
        until(
            lambda: (
                operator.control_server.halted() and operator.control_server.halted()[0].reason == "loop"
            ),
            "a loop",
        )
        operator.order("continue")
        running.result(60)


def test_nobody_connected_costs_next_to_nothing():
    """What the boundaries call looks at a value, and calls nothing."""
    called = list[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event in ("call", "c_call"):
            called.append(frame.f_code.co_qualname)

    with at_control_server() as operator:
        control_server, driver = operator.control_server, operator.control_server.driver
        call = driver.open("http", "GET /", b"", {})
        turn = driver.gate.arrive(None)

        def boundary() -> None:
            control_server.pending_release(call, "GET /", b"")
            control_server.arrival(call, turn)
            control_server.answered(call, {a.HTTP_RESPONSE_STATUS_CODE: 500})
            control_server.ended(call)

        sys.setprofile(note)
        try:
            boundary()
        finally:
            sys.setprofile(None)
        ours = [name for name in called if name.startswith("ControlServer.")]
        assert ours == [
            "ControlServer.pending_release",
            "ControlServer.arrival",
            "ControlServer.answered",
            "ControlServer.ended",
        ]
        assert control_server.pending_release(call, "GET /", b"") is None
        assert control_server.arrival(call, turn) is turn


def test_requests_of_another_run_go_on():
    with at_control_server() as operator:
        operator.order("pause")
        assert operator.control_server.holds()[0].trace_id == RUN
        operator.control_server._held.own_trace = lambda: "cd" * 16  # the process is another run's
        assert looks(1).result(60) == [1]
