"""States that a program has registered: reported where it is halted, and edited there."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
from collections.abc import Callable, Iterator
from typing import Any, cast

import pydantic
import pytest
from support.outside.halting import at_control_server, going
from support.starting.running import until
from support.tapes.sessions import recording, replay

import playhead
from playhead_core.rerun.plans import Edit
from playhead_core.rerun.state_documents import unkept_in
from playhead_instrumentation.control import pauses
from playhead_instrumentation.control.server import MOST_WANTED
from playhead_instrumentation.manual import checkpoint
from playhead_instrumentation.session import session
from playhead_instrumentation.tracing.attempts import current_call
from playhead_replay.run.states import states_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class Budget:
    left = 4


BUDGET = Budget()
PLAN: list[str] = []


def put(kept: dict[str, Any]) -> None:
    BUDGET.left = kept["left"]


@playhead.tool
def look(at: Any) -> Any:
    return at


@playhead.tool
async def look_later(at: Any) -> Any:
    return at


def program() -> list[Any]:
    BUDGET.left, PLAN[:] = 4, ["begin"]
    return [look(1), BUDGET.left, *PLAN, look(2)]


def async_program() -> list[Any]:
    async def asks() -> list[Any]:
        return [await look_later(1), BUDGET.left, *PLAN, await look_later(2)]

    BUDGET.left, PLAN[:] = 4, ["begin"]
    return asyncio.run(asks())


@pytest.fixture(autouse=True)
def _the_thread_of_a_program_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "STATE_S", 60.0)


@pytest.fixture
def registered() -> Iterator[None]:
    playhead.register_state("budget", lambda: {"left": BUDGET.left}, put)
    playhead.register_state("plan", lambda: PLAN)
    playhead.register_state("fixed", lambda: 7)
    yield
    checkpoint._registered.clear()


@pytest.mark.parametrize("ask", [program, async_program])
def test_a_state_is_edited_where_the_program_waits_and_a_replay_repeats_it(
    registered: None, ask: Callable[[], list[Any]]
):
    with at_control_server() as operator:
        operator.order("pause")
        running = going(ask)
        operator.halted()
        assert operator.order("edit", state="budget", edits=[Edit("left", 9)]) == ""
        assert operator.order("edit", state="plan", edits=[Edit("[0]", "other")]) == ""
        assert "no state nosuch is registered" in operator.order("edit", state="nosuch", edits=[])
        assert "nosuch matches nothing" in operator.order(
            "edit", state="budget", edits=[Edit("nosuch", 9)]
        )
        assert "has no way to be set" in operator.order("edit", state="fixed", edits=[Edit("", 8)])
        assert operator.order("continue") == ""
        assert running.result(60) == [1, 9, "other", 2]
        tape = operator.sink.tape()
    (made,) = tape.named(e.PLAYHEAD_CHECKPOINT)
    assert made.attributes[a.PLAYHEAD_CHECKPOINT_STATES] == ["budget", "plan", "fixed"]
    found, now = replay(lambda: going(ask).result(60), tape)
    assert found == [1, 9, "other", 2]
    assert [fact.attributes for fact in now.named(e.PLAYHEAD_STATE)] == [
        fact.attributes for fact in tape.named(e.PLAYHEAD_STATE)
    ]


def test_an_operator_sees_a_halt_only_when_the_tape_has_it():
    taken = list[tuple[list[Any], str]]()

    def budget() -> int:
        """The state is taken while the halt is recorded, before the fact that says so."""
        taken.append((operator.control_server.halted(), operator.order("edit", edits=[Edit("x", 2)])))
        return 1

    playhead.register_state("budget", budget)
    try:
        with at_control_server() as operator:
            operator.order("pause")
            running = going(program)
            (waits,) = operator.halted()
            assert taken == [([], "no request is pending")]
            assert waits.number == 1
            operator.order("continue")
            running.result(60)
    finally:
        checkpoint._registered.clear()


class Order(pydantic.BaseModel):
    number: int
    tags: list[str] = []


@dataclasses.dataclass
class Basket:
    left: int
    orders: list[Order]
    odd: int = cast("int", "an annotation that is not kept to")


BASKET = Basket(3, [Order(number=81)])


def take(basket: Basket) -> None:
    if basket.left < 0:
        raise ValueError("nothing can be owed")
    BASKET.left, BASKET.orders = basket.left, basket.orders


def asks_twice() -> list[Any]:
    BASKET.left = 3
    return [look(1), BASKET.left, look(2)]


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("left", "many", "basket.left cannot be this"),
        ("orders[0].number", "many", "basket.orders[0].number cannot be this"),
        ("orders[0].tags", [1], "basket.orders[0].tags[0] cannot be this"),
        ("left", -1, "the program does not take this as basket"),
        ("nosuch", 1, "nosuch matches nothing"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_and_changes_nothing(path: str, value: Any, why: str):
    playhead.register_state("basket", lambda: BASKET, take)
    try:
        with at_control_server() as operator:
            operator.order("pause")
            running = going(asks_twice)
            operator.halted()
            assert why in operator.order("edit", state="basket", edits=[Edit(path, value)])
            assert operator.order("edit", state="basket", edits=[Edit("left", 5)]) == ""
            assert operator.order("continue") == ""
            assert running.result(60) == [1, 5, 2]
            tape = operator.sink.tape()
    finally:
        checkpoint._registered.clear()
    states = list(tape.named(e.PLAYHEAD_STATE))
    assert len([one for one in states if a.PLAYHEAD_EDITED_DIGEST in one.attributes]) == 1


def test_what_cannot_be_kept_is_named_once_with_its_path(capfd: pytest.CaptureFixture[str]):
    held = {"plan": [1, {"socket": socket.socket()}]}
    with held["plan"][1]["socket"], recording() as sink:
        for _ in range(3):
            assert playhead.checkpoint(held, label="here") is held
    (said,) = [line for line in capfd.readouterr().err.splitlines() if "cannot be kept" in line]
    assert said.endswith("of the state 'checkpoint' this cannot be kept: plan[1].socket: socket.socket")
    [state] = states_of(sink.tape())[-1:]
    assert list(unkept_in(state.document)) == ["plan[1].socket: socket.socket"]


def marks(tape: Any) -> list[tuple[Any, ...]]:
    """Kind, label and states of each checkpoint, and the number of exchanges before it."""
    asked = [fact.seq for fact in tape.named(e.PLAYHEAD_EXCHANGE_REQUEST)]
    return [
        (
            fact.attributes[a.PLAYHEAD_CHECKPOINT_KIND],
            fact.attributes.get(a.PLAYHEAD_CHECKPOINT_LABEL),
            fact.attributes[a.PLAYHEAD_CHECKPOINT_STATES],
            len([seq for seq in asked if seq < fact.seq]),
        )
        for fact in tape.named(e.PLAYHEAD_CHECKPOINT)
    ]


NAMES = ["budget", "plan", "fixed"]


@pytest.mark.parametrize("ask", [program, async_program])
def test_an_operator_has_a_checkpoint_made_where_the_program_goes_on_and_a_replay_repeats_it(
    registered: None, ask: Callable[[], list[Any]]
):
    with at_control_server() as operator:
        assert operator.order("checkpoint", said="before") == ""
        assert operator.control_server.made() == []
        assert going(ask).result(60) == [1, 4, "begin", 2]
        (made,) = operator.control_server.made()
        tape = operator.sink.tape()
        operator.control_server.told([made])
        assert operator.control_server.made() == [] and not operator.control_server.watchful
    assert (made.order, tape.fact(made.seq).name) == (1, e.PLAYHEAD_CHECKPOINT)
    assert marks(tape) == [("manual", "before", NAMES, 1)]
    found, now = replay(lambda: going(ask).result(60), tape)
    assert found == [1, 4, "begin", 2]
    assert marks(now) == marks(tape)
    assert [fact.attributes for fact in now.named(e.PLAYHEAD_CONTROL_CHECKPOINT)] == [
        {
            a.PLAYHEAD_CONTROL_BY: "anna",
            a.PLAYHEAD_CHECKPOINT_KIND: "manual",
            a.PLAYHEAD_CHECKPOINT_LABEL: "before",
        }
    ]


def test_a_program_that_is_halted_makes_the_checkpoint_where_it_waits(registered: None):
    with at_control_server() as operator:
        operator.order("pause")
        running = going(program)
        operator.halted()
        assert operator.order("checkpoint", said="halted here") == ""
        until(operator.control_server.made, "it is made")
        assert len(operator.control_server.halted()) == 1
        operator.order("continue")
        assert running.result(60) == [1, 4, "begin", 2]
        tape = operator.sink.tape()
    assert marks(tape) == [("auto", "halted", NAMES, 1), ("manual", "halted here", NAMES, 1)]
    _, now = replay(lambda: going(program).result(60), tape)
    assert marks(now) == marks(tape)


def test_checkpoints_that_nothing_makes_room_for_are_refused():
    with at_control_server() as operator:
        for _ in range(MOST_WANTED):
            assert operator.order("checkpoint") == ""
        assert "are to be made already" in operator.order("checkpoint")


def test_a_checkpoint_is_made_when_its_time_has_come_and_a_replay_repeats_it(registered: None):
    def timed(every_s: float) -> list[Any]:
        playhead.register_state("budget", lambda: {"left": BUDGET.left}, put, every_s=every_s)
        return program()

    with recording() as sink:
        timed(3600)
        timed(1e-9)
    tape = sink.tape()
    assert marks(tape) == [("auto", None, NAMES, 3), ("auto", None, NAMES, 4)]
    _, now = replay(lambda: (timed(3600), timed(1e-9)), tape)
    assert marks(now) == marks(tape)
    with pytest.raises(ValueError, match="every_s"):
        playhead.register_state("budget", lambda: 1, every_s=float("nan"))


def test_a_checkpoint_is_made_every_so_many_steps_and_a_replay_repeats_it(registered: None):
    def asks() -> list[Any]:
        playhead.register_state("budget", lambda: {"left": BUDGET.left}, put, every_steps=2)
        return [look(at) for at in range(5)]

    with recording() as sink:
        asks()
    tape = sink.tape()
    assert marks(tape) == [("auto", None, NAMES, 2), ("auto", None, NAMES, 4)]
    by = [fact.attributes[a.PLAYHEAD_CONTROL_BY] for fact in tape.named(e.PLAYHEAD_CONTROL_CHECKPOINT)]
    assert by == ["steps", "steps"]
    _, now = replay(asks, tape)
    assert marks(now) == marks(tape)
    with pytest.raises(ValueError, match="every_steps"):
        playhead.register_state("budget", lambda: 1, every_steps=-1)


def test_attempts_of_one_call_are_one_step(registered: None):
    class UnderWay:
        """A call of a model."""

    with recording() as sink:
        playhead.register_state("budget", lambda: {"left": BUDGET.left}, put, every_steps=2)
        call: Any = UnderWay()
        token = current_call.set(call)
        look(1), look(2), look(3)
        current_call.reset(token)
        look(4)
    assert marks(sink.tape()) == [("auto", None, NAMES, 4)]


def test_nothing_is_in_the_way_of_a_call_where_no_time_is_said(registered: None):
    with recording():
        running = session.current()
        assert running is not None and running.driver.control is None
        playhead.register_state("budget", lambda: 1)
        assert running.driver.control is None
