"""Which of several spans that report one call of a tool is the step."""

from __future__ import annotations

import pytest

from playhead_genai.steps import CallTime, Nesting, Role
from playhead_genai.tool_reports import OTHER_SOURCE, ToolTime, sources_in
from playhead_semconv import attributes as a

HOOK, MARK, MCP, LLMETRY = (
    (a.PLAYHEAD_FRAMEWORK_NAME,),
    (a.PLAYHEAD_EXCHANGE_ID,),
    ("mcp.method.name",),
    ("t",),
)
OTHER = (OTHER_SOURCE,)

Tool = tuple[str, str, str, int, int, tuple[str, ...]]
"""Id, id of the parent, name, start, end, sources."""

CALLS: dict[str, tuple[list[Tool], str]] = {
    "a hook, an MCP server and a function": (
        [
            ("a", "", "mcp__shop__charge", 0, 9, HOOK),
            ("b", "a", "charge", 1, 8, MCP),
            ("c", "b", "charge", 2, 7, MARK),
        ],
        "a",
    ),
    "another instrumentation around ours": (
        [("a", "", "charge", 0, 9, OTHER), ("b", "a", "charge", 1, 8, HOOK)],
        "b",
    ),
    "another tool inside": (
        [("a", "", "charge", 0, 9, OTHER), ("b", "a", "look_up", 1, 8, HOOK)],
        "ab",
    ),
    "a tool that calls itself": (
        [("a", "", "walk", 0, 9, HOOK), ("b", "a", "walk", 1, 8, HOOK), ("c", "b", "walk", 2, 7, HOOK)],
        "abc",
    ),
    "a marked function in a tool that was taken over": (
        [("a", "", "walk", 0, 9, HOOK + MARK), ("b", "a", "walk", 1, 8, MARK)],
        "ab",
    ),
    "parallel calls, which two instrumentations report beside ours": (
        [
            *(("a", "", "look_up", 0, 9, OTHER), ("b", "", "look_up", 1, 8, HOOK)),
            *(("c", "", "look_up", 2, 9, OTHER), ("d", "", "look_up", 3, 7, HOOK)),
            *(("e", "", "look_up", 4, 9, LLMETRY), ("f", "", "look_up", 5, 9, LLMETRY)),
        ],
        "bd",
    ),
    "one after the other": (
        [("a", "", "look_up", 0, 3, OTHER), ("b", "", "look_up", 4, 9, HOOK)],
        "ab",
    ),
    "stored before sources were": (
        [("a", "", "charge", 0, 9, ()), ("b", "a", "charge", 1, 8, ())],
        "ab",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_call_is_one_step(name: str):
    spans, steps = CALLS[name]
    tools = [
        ToolTime(id, tool, start, end, sources, "process") for id, _, tool, start, end, sources in spans
    ]
    roles = [(id, parent, Role.STEP) for id, parent, *_ in spans]
    nesting = Nesting(roles, tools=reversed(tools))
    assert nesting.steps() == set(steps)
    assert all(nesting.told_by(id) in steps for id, *_ in spans if id not in steps)
    live = Nesting[str]()
    for role, tool in zip(roles, tools, strict=True):
        live.add(*role, tool)
    assert live.steps() == set(steps)


def test_spans_of_other_processes_do_not_report_ours():
    there = ToolTime("a", "look_up", 0, 9, OTHER, "there")
    here = ToolTime("b", "look_up", 1, 8, HOOK, "here")
    roles = [("a", "", Role.STEP), ("b", "", Role.STEP)]
    assert Nesting(roles, tools=[there, here]).steps() == {"a", "b"}
    assert Nesting(roles, tools=[there, here._replace(process="there")]).steps() == {"b"}
    unknown = [one._replace(process=None) for one in (there, here)]
    assert Nesting(roles, tools=unknown).steps() == {"a", "b"}
    assert sources_in({"gen_ai.tool.name": "look_up"}) == OTHER


def test_a_call_of_a_model_that_is_told_elsewhere_in_the_process():
    """OpenLLMetry's spans have a tree of their own."""
    spans = [
        *(("agent", "", Role.OTHER), ("ours", "agent", Role.OWN_CALL)),
        *(("theirs", "", Role.OTHER), ("task", "theirs", Role.OTHER), ("chat", "task", Role.CALL)),
    ]
    model = frozenset({"gpt-4o"})
    ours, theirs = CallTime("ours", 2, 8, model, "here"), CallTime("chat", 1, 9, model, "here")
    assert Nesting(spans, lambda: [ours, theirs]).steps() == {"ours"}
    assert Nesting(spans, lambda: [ours, theirs]).bearers({"ours", "chat"}) == {"ours"}
    apart = theirs._replace(process="there")
    assert Nesting(spans, lambda: [ours, apart]).steps() == {"ours", "chat"}
