"""Decisions of a run: reported ones, and those of models about the tools that they are offered."""

import json
import math
from typing import Any

import pytest
from support.answers.spoken import QUESTION, talk
from support.tapes.handmade import HandMade

from playhead_replay import Run
from playhead_replay.decisions import NO_TOOL, Decision, confidence_in, decisions_of
from playhead_semconv import events as e

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("search", "refund")
]


def answer(content: str | None, *calls: str, **more: Any) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": "search", "arguments": "{}"}}
            for id in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "stop", **more}
    return json.dumps({"model": "gpt-4o", "choices": [choice]}).encode()


def request(*messages: dict[str, Any]) -> bytes:
    return json.dumps({"model": "gpt-4o", "messages": messages, "tools": TOOLS}).encode()


def made(**reported: Any) -> HandMade:
    """Two searches, of which the first fails, then an answer. ``reported``: after the first one."""
    tape, history = HandMade().start(), [QUESTION]
    likely = {"logprobs": {"content": [{"logprob": -0.5, "top_logprobs": [{"logprob": -9}]}]}}
    for number, result in enumerate(({"error": "timed out"}, ["order 81"])):
        said = answer("I look it up.", f"c{number}", **(likely if not number else {}))
        talk(tape.wait(1), request(*history), said)
        if reported and not number:
            at = {f"{e.PLAYHEAD_DECISION}.{name}": value for name, value in reported.items()}
            tape.fact(e.PLAYHEAD_DECISION, attributes=at)
        history.append(json.loads(said)["choices"][0]["message"])
        history.append({"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps(result)})
    talk(tape.wait(1), request(*history), answer("done"))
    return tape


def found(tape: HandMade) -> list[Decision]:
    run = Run.of_tapes([tape.exit().tape()], [span.otlp for span in tape.spans])
    return decisions_of(run)


def test_a_model_decides_about_its_tools():
    first, second, last = found(made())
    assert (first.chosen, first.options, first.type) == (
        "search",
        ["search", "refund"],
        "tool_selection",
    )
    assert (first.thought, first.actions, first.step) == ("I look it up.", ["1.1"], 1)
    assert first.confidence == round(math.exp(-0.5), 4) and second.confidence is None
    assert (first.failed, first.recovered_by, first.outcome) == (True, "2.1", "timed out")
    assert (second.failed, second.recovered_by) == (False, None) and "order 81" in second.outcome
    assert (last.chosen, last.actions, last.thought) == (NO_TOOL, [], "")
    assert all(one.derived and one.to_json()["version"] for one in (first, second, last))


def test_what_a_program_reports_takes_the_place_of_what_is_derived():
    decisions = found(made(chosen="search", reason="fresh data"))
    assert [(one.step, one.derived) for one in decisions] == [(1, False), (2, True), (3, True)]
    assert (decisions[0].reason, decisions[0].actions) == ("fresh data", ["1.1"])
    assert decisions[0].failed and decisions[0].to_json()["version"] is None
    assert len(found(made(chosen="refund"))) == 4


@pytest.mark.parametrize(
    ("body", "confidence"),
    [
        (b'data: {"choices":[{"logprobs":{"content":[{"logprob":-1}]}}]}\n\ndata: [DONE]\n', 0.3679),
        (b'{"candidates": [{"avgLogprobs": -0.1}]}', 0.9048),
        (b'{"choices": [{"logprobs": null}]}', None),
        (b'{"logprob": "high"}', None),
        (b'{"logprobs": ' + b'{"content": [' * 900 + b"]}" * 900 + b"}", None),
        (b'{"content": [{"logprob": NaN}, {"logprob": true}]}', None),
    ],
)
def test_confidence_comes_from_log_probabilities(body: bytes, confidence: float | None):
    assert confidence_in(body) == confidence
