"""States that a program has registered: reported where it is halted, and edited there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.halting import at_desk, going
from support.sessions import replay

import playhead
from playhead_instrumentation.boundaries import checkpoint
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.rerun.plans import Edit


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
    with at_desk() as operator:
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
