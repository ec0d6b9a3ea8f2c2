"""The ways from one row to another, in a run with frames within frames."""

from __future__ import annotations

import pytest
from support.tapes.handmade import HandMade

from playhead_cli.browse.opened import OpenRun
from playhead_cli.browse.rows import BrowsedRows
from playhead_cli.browse.viewpoint import Viewpoint
from playhead_replay import Run
from playhead_semconv import attributes as a

AGENT = {a.GEN_AI_OPERATION_NAME: "invoke_agent"}


@pytest.fixture
def run() -> Run:
    """Rows: 0 agent, 1 inner agent, 2 and 3 its tools, 4 a tool of the agent, 5 a tool after it."""
    made = HandMade().start()
    outer = made.begin("invoke_agent outer", **AGENT)
    inner = made.begin("invoke_agent inner", parent=outer, **AGENT)
    for parent, name in ((inner, "a"), (inner, "b"), (outer, "c"), (0xA0, "d")):
        tool = {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: name}
        number = made.begin(f"execute_tool {name}", parent=parent, **tool)
        made.finish(number, error="no" if name == "b" else "")
        if name == "b":
            made.finish(inner, error="no")
        if name == "c":
            made.finish(outer)
    made.exit()
    return Run.of_tape(made.tape(), [span.otlp for span in made.spans])


def test_the_ways_go_both_directions_and_ends_stop(run: Run):
    rows = BrowsedRows(run)
    assert [rows.number(at) for at in range(len(rows))] == [1, 1, 1, 2, 3, 4]
    assert [rows.step(at, 1) for at in range(6)] == [2, 2, 3, 4, 5, 5]
    assert [rows.step(at, -1) for at in range(6)] == [0, 1, 2, 2, 3, 4]
    assert [rows.over(at, 1) for at in range(6)] == [5, 4, 3, 4, 5, 5]
    assert [rows.over(at, -1) for at in range(6)] == [0, 0, 1, 2, 1, 0]
    assert [rows.finish(at, 1) for at in range(6)] == [0, 5, 4, 4, 5, 5]
    assert [rows.finish(at, -1) for at in range(6)] == [0, 0, 1, 1, 0, 5]
    assert [rows.error(at, 1) for at in range(6)] == [3, 3, 3, 3, 4, 5], "frames are no steps"
    assert [rows.row(at, 2) for at in range(6)] == [2, 3, 4, 5, 5, 5]


def test_the_difference_is_to_the_mark_the_origin_and_the_step_before_by_turns(run: Run):
    look = Viewpoint(OpenRun(run), 4)

    def turned() -> str:
        look.turn_difference()
        return look.wanted.against

    assert (look.wanted.tab, look.wanted.against) == ("Messages", "")
    assert [turned(), turned()] == ["", ""]
    look.mark()
    look.at = 2
    assert [turned(), turned(), turned()] == ["4", "", "4"]
    run.origin = "4f2a1111111111111111111111111111"
    assert [turned(), turned(), turned()] == ["origin", "", "4"]
    assert look.swapped() == 5
    assert look.wanted.against == "1", "the mark went to where the cursor was"
