"""What a condition on a run means, and what is refused as one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.servers.scripted import openai_chat
from support.tapes.handmade import HandMade

from playhead_core.errors import ExchangeUnmatched, UsageError
from playhead_replay import Run
from playhead_replay.goldens.conditions import read_condition, unfulfilled
from playhead_replay.goldens.observed import ObservedRun
from playhead_replay.goldens.recorded_tools import RecordedTools

CALL = openai_chat.tool_call("call_1", "refund", '{"order": 81, "amount": 490, "why": {"a": [1]}}')
CALLING = openai_chat.completion(None, tool_calls=[CALL], finish_reason="tool_calls")
ANSWER = openai_chat.completion("490 EUR are on their way")
TOLD = [
    {"role": "user", "content": "refund"},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "done"},
]


def observed(code: int = 0) -> ObservedRun:
    made = HandMade().start()
    for messages, answer in ((TOLD[:1], CALLING), (TOLD, ANSWER)):
        request = json.dumps({"model": "gpt-4o", "messages": messages}).encode()
        made.chat(request, (json.dumps(answer).encode(),))
    made.say("490 EUR are on their way\n").exit(code)
    spans = [span.otlp for span in made.spans]
    return ObservedRun(Run.of_tape(made.tape(), spans, name="refund-1"))


@pytest.fixture(scope="module")
def run() -> ObservedRun:
    return observed()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("status=success", None),
        ("status=failure", "success"),
        ("exit=0", None),
        ("exit!=0", "0"),
        ("steps=2", None),
        ("steps>2", "2"),
        ("tokens<10", "34"),
        ("calls.refund=1", None),
        ("calls.refund<1", "1"),
        ("calls.look=0", None),
        ("tools=refund", None),
        ("tools~look", "refund"),
        ("tool.refund.amount=490", None),
        ("tool.refund.amount=49", "490"),
        ("tool.refund.amount>=490.5", "490"),
        ("tool.refund.why.a[0]=1", None),
        ("tool.refund.none=1", "(nothing)"),
        ("tool.refund.none!=1", None),
        ("tool.look.order=81", "(nothing)"),
        ("printed~490 EUR", None),
        ("printed!~490", "490 EUR are on their way"),
        ("answer ~ on their way", None),
        ("answer=490 EUR are on their way", None),
        ("response.total=49", "(nothing)"),
        ("state.order=81", "(nothing)"),
    ],
)
def test_a_condition_is_about_what_the_run_did(run: ObservedRun, text: str, found: str | None):
    wrong = unfulfilled(run, [text])
    assert [said for _, said in wrong] == ([] if found is None else [found])


def test_a_failed_run_is_a_failure():
    assert unfulfilled(observed(code=1), ["status=failure", "exit=1"]) == []


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("printed", "'printed' is not a condition", "printed~TEXT, "),
        ("printd~x", "a run has no printd", "did you mean printed?"),
        ("calls=1", "a run has no calls", "did you mean calls?"),
        ("tool.refund=1", "a run has no tool.refund", "did you mean tool?"),
        ("steps<many", "'steps<many': 'many' is not a number", "steps<5"),
        ("response.a..b=1", "a..b is no path", "names and numbers"),
    ],
)
def test_what_is_no_condition_says_what_would_be_one(text: str, what: str, hint: str):
    with pytest.raises(UsageError) as refused:
        read_condition(text)
    assert refused.value.what.startswith(what)
    assert refused.value.hint.startswith(hint)


def test_what_a_model_was_told_stands_in_for_a_tool_that_is_not_marked(run: ObservedRun):
    tools = RecordedTools(run.run)
    assert list(tools) == ["refund"]
    arguments: dict[str, Any] = {"order": 81, "amount": 490, "why": {"a": [1]}}
    assert [tools["refund"](**arguments) for _ in range(2)] == ["done", "done"]
    with pytest.raises(ExchangeUnmatched) as missed:
        tools["refund"](order=82, amount=490)
    assert missed.value.what == "the tape has no refund(order=82, amount=490)"
    assert missed.value.cause.startswith("it has refund(order=81, amount=490, ")
    assert tools.get("look") is None and "look" not in tools
