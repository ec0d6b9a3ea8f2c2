"""A program whose framework other instrumentations report, too: each call is one step."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from instrumentation.frameworks.conftest import APART, Recorded
from support.servers.scripted import Reply, Request, json_reply, openai_chat

from playhead_replay.timeline.tool_calls import tool_calls_of
from playhead_semconv import attributes as a

PROGRAM = Path(__file__).with_name("beside_program.py").read_text("utf-8")
OTHERS = Path(sys.prefix, "apart-instrumentations")
CALLS = [("look_up", 81), ("look_up", 82), ("charged", 81)]


def answer(request: Request) -> Reply:
    """Call three tools, two of them the same; then an answer."""
    if request.json["messages"][-1]["role"] != "user":
        return json_reply(openai_chat.completion("done"))
    calls = [
        openai_chat.tool_call(f"call_{place}", name, {"order": order})
        for place, (name, order) in enumerate(CALLS)
    ]
    return json_reply(openai_chat.completion(tool_calls=calls))


def test_each_call_is_one_step_with_its_tokens(record: Callable[..., Recorded]):
    path = ":".join(map(str, (OTHERS, *APART)))
    recorded = record(PROGRAM, "/chat/completions", answer, PYTHONPATH=path)
    assert recorded.stdout == "done\n"
    run = recorded.home.run("last")
    told = Counter(span.attributes.get(a.GEN_AI_TOOL_NAME) for span in run.spans)
    assert (told["look_up"], told["charged"]) == (6, 3)  # by ours and by two of the others
    assert Counter(step.span.name for step in run.steps) == {
        "chat gpt-4o": 2,
        "execute_tool look_up": 2,
        "execute_tool charged": 1,
    }
    assert all(
        a.PLAYHEAD_FRAMEWORK_NAME in step.span.attributes
        for step in run.steps
        if step.span.operation == "execute_tool"
    )
    calls = tool_calls_of(run)
    assert [(call.name, call.id, call.is_derived) for call in calls] == [
        (name, f"call_{place}", False) for place, (name, _) in enumerate(CALLS)
    ]
    assert len({call.span.span_id for call in calls if call.span is not None}) == 3
    (row,) = recorded.home.runs()
    assert (row["steps"], row["input_tokens"]) == (5, run.usage.input_tokens) == (5, 24)
    shown = recorded.home.playhead("show", "last").stdout
    assert (shown.count("execute_tool look_up"), shown.count("execute_tool charged")) == (2, 1)
