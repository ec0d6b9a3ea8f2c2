"""Marked tools of every form: halted, called with other arguments, rejected, answered by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from support.outside.halting import at_control_server, going
from support.tapes.sessions import replay

import playhead
from playhead_core.control.messages import HandAnswer
from playhead_core.errors import AskRejected
from playhead_core.rerun.plans import Edit

CALLED: list[Any] = []


@playhead.tool
def plain(to: str, *more: str, times: int = 1) -> str:
    CALLED.append((to, more, times))
    return to * times


@playhead.tool
async def waits(to: str, times: int = 1) -> str:
    await asyncio.sleep(0)
    return to * times


@playhead.tool
def streams(to: str, times: int = 1):
    for _ in range(times):
        yield to
    return "end"


@playhead.tool
async def streams_later(to: str, times: int = 1):
    for _ in range(times):
        yield to


def by_stream() -> Any:
    found: list[str] = []
    stream = streams("a")
    while True:
        try:
            found.append(next(stream))
        except StopIteration as over:
            return found if over.value is None else [*found, over.value]


async def by_later_stream() -> Any:
    return [one async for one in streams_later("a")]


FORMS: dict[str, Callable[[], Any]] = {
    "call": lambda: plain("a"),
    "async call": lambda: asyncio.run(waits("a")),
    "stream": by_stream,
    "async stream": lambda: asyncio.run(by_later_stream()),
}
EDITED = {
    "call": "bbb",
    "async call": "bbb",
    "stream": ["b", "b", "b", "end"],
    "async stream": ["b"] * 3,
}
BY_HAND = {"call": "x", "async call": "x", "stream": ["x"], "async stream": []}


@pytest.mark.parametrize("form", FORMS)
def test_a_tool_is_called_with_the_arguments_of_the_operator(form: str):
    with at_control_server("tool=*") as operator:
        running = going(FORMS[form])
        (halted,) = operator.halted()
        assert halted.kind == "tool"
        edits = [Edit("to", "b"), Edit("times", 3)]
        assert operator.order("edit", edits=edits) == ""
        assert operator.order("continue") == ""
        assert running.result(60) == EDITED[form]
        tape = operator.sink.tape()
    assert replay(lambda: going(FORMS[form]).result(60), tape)[0] == EDITED[form]


@pytest.mark.parametrize("form", FORMS)
def test_a_rejected_tool_raises(form: str):
    with at_control_server("tool=*") as operator:
        running = going(FORMS[form])
        operator.halted()
        assert operator.order("reject", said="no") == ""
        with pytest.raises(AskRejected, match="no"):
            running.result(60)
        tape = operator.sink.tape()
    with pytest.raises(AskRejected, match="no"):
        replay(lambda: going(FORMS[form]).result(60), tape)


@pytest.mark.parametrize("form", FORMS)
def test_a_tool_returns_what_the_operator_says(form: str):
    with at_control_server("tool=*") as operator:
        running = going(FORMS[form])
        operator.halted()
        assert operator.order("answer", answer=HandAnswer("no json")).startswith("what a tool returns")
        assert operator.order("answer", answer=HandAnswer('"x"')) == ""
        assert running.result(60) == BY_HAND[form]
        tape = operator.sink.tape()
    assert replay(lambda: going(FORMS[form]).result(60), tape)[0] == BY_HAND[form]


def test_arguments_that_were_not_edited_are_those_of_the_program():
    class Mine(str):
        pass

    mine = Mine("kept")
    CALLED.clear()
    with at_control_server("tool=plain") as operator:
        running = going(lambda: plain(mine, "more", times=1))
        operator.halted()
        operator.order("edit", edits=[Edit("times", 2)])
        operator.order("continue")
        assert running.result(60) == "keptkept"
    assert CALLED[0][0] is mine
    assert CALLED == [("kept", ("more",), 2)]
