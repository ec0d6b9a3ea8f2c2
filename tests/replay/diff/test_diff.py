"""Two runs beside each other: twenty planted differences, each found at its step."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from support.tapes.handmade import HandMade

from playhead_cli.demo.shapes import openai_chat
from playhead_replay import Run
from playhead_replay.diff import diff, variability
from playhead_replay.diff.alignment import moved

Script = list[dict[str, Any]]


def conversation() -> Script:
    """Ten calls of an agent that sends its whole history each time, with tools in between."""
    steps: Script = []
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You decide refunds."},
        {"role": "user", "content": "Please refund order 81."},
    ]
    for turn in range(10):
        last = turn == 9
        city = f"order {turn}"
        whole = openai_chat.completion(
            "All done." if last else None,
            tool_calls=()
            if last
            else [openai_chat.tool_call(f"call_{turn}", "search", {"q": city, "n": turn})],
            id=f"chatcmpl-{turn}",
        )
        body = {"model": "gpt-4o", "temperature": 0, "messages": copy.deepcopy(messages)}
        steps.append({"body": body, "answer": whole})
        messages.append(copy.deepcopy(whole["choices"][0]["message"]))
        messages.append({"role": "tool", "tool_call_id": f"call_{turn}", "content": f"found {turn}"})
    return steps


def played(script: Script, name: str = "left", *, exit: int = 0, said: str = "ok\n") -> Run:
    made = HandMade().start()
    for step in script:
        made.chat(
            json.dumps(step["body"]).encode(),
            (json.dumps(step["answer"]).encode(),),
            key=step.get("key", "POST http://provider/v1/chat/completions"),
            status=step.get("status", 200),
        )
    made.say(said).exit(exit)
    return Run.of_tape(made.tape(), [span.otlp for span in made.spans], name=name)


def from_then_on(at: int, change: Callable[[list[dict[str, Any]]], None]) -> Callable[[Script], None]:
    """Change the history of every request from step ``at`` on."""

    def apply(script: Script) -> None:
        for step in script[at - 1 :]:
            change(step["body"]["messages"])

    return apply


def answer(at: int, change: Callable[[dict[str, Any]], None]) -> Callable[[Script], None]:
    def apply(script: Script) -> None:
        message = script[at - 1]["answer"]["choices"][0]["message"]
        change(message)
        for step in script[at:]:
            change(step["body"]["messages"][2 * at])

    return apply


def arguments(**fields: Any) -> Callable[[dict[str, Any]], None]:
    def change(message: dict[str, Any]) -> None:
        message["tool_calls"][0]["function"]["arguments"] = json.dumps(fields)

    return change


def renamed(message: dict[str, Any]) -> None:
    message["tool_calls"][0]["function"]["name"] = "lookup"


def body(at: int, **fields: Any) -> Callable[[Script], None]:
    return lambda script: script[at - 1]["body"].update(fields)


def without(at: int, name: str) -> Callable[[Script], None]:
    return lambda script: script[at - 1]["body"].pop(name)


def content(index: int, text: str) -> Callable[[list[dict[str, Any]]], None]:
    return lambda messages: messages[index].update(content=text)


def alone(number: int) -> dict[str, Any]:
    """A call whose request rests on no other."""
    asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"Question {number}"}]}
    return {"body": asked, "answer": openai_chat.completion(f"Answer {number}", id=f"chatcmpl-{number}")}


PLANTED: list[tuple[Callable[[Script], Any], int, str, str]] = [
    (body(1, model="gpt-4.1"), 1, "request", "request.model"),
    (body(4, model="gpt-4.1"), 4, "request", "request.model"),
    (body(7, temperature=0.5), 7, "request", "request.temperature"),
    (body(10, temperature=True), 10, "request", "request.temperature"),
    (without(5, "temperature"), 5, "request", "request.temperature"),
    (body(6, seed=3), 6, "request", "request.seed"),
    (from_then_on(1, content(0, "You refuse.")), 1, "request", "request.messages[0].content"),
    (from_then_on(3, content(1, "Order 82.")), 3, "request", "request.messages[1].content"),
    (from_then_on(4, content(7, "nothing")), 4, "request", "request.messages[7].content"),
    (from_then_on(8, content(15, "FOUND")), 8, "request", "request.messages[15].content"),
    (
        from_then_on(2, lambda messages: messages.insert(2, {"role": "user", "content": "!"})),
        2,
        "request",
        "request.messages[2]",
    ),
    (from_then_on(6, lambda messages: messages.pop(1)), 6, "request", "request.messages[1]"),
    (answer(2, arguments(q="order 9", n=1)), 2, "response", "response[0].parts[0].arguments.q"),
    (answer(5, arguments(q="order 4", n="4")), 5, "response", "response[0].parts[0].arguments.n"),
    (answer(9, arguments(q="order 8")), 9, "response", "response[0].parts[0].arguments.n"),
    (answer(3, renamed), 3, "response", "response[0].parts[0].name"),
    (
        lambda script: script[9]["answer"]["choices"][0]["message"].update(content="Not done."),
        10,
        "response",
        "response[0].parts[0].content",
    ),
    (
        lambda script: script[9]["answer"]["choices"][0].update(finish_reason="length"),
        10,
        "response",
        "response.finish_reasons[0]",
    ),
    (lambda script: script.pop(9), 10, "removed", ""),
    (
        lambda script: script[3].update(key="POST http://other/v1/chat/completions"),
        4,
        "request",
        "request line",
    ),
]


@pytest.mark.parametrize("number", range(len(PLANTED)))
def test_a_planted_difference_is_found_at_its_step(number: int):
    plant, step, kind, path = PLANTED[number]
    script = conversation()
    plant(script)
    found = diff(played(conversation()), played(script, "right"))
    assert found.first is not None
    assert (found.first.left, found.first.kind, found.first.path) == (step, kind, path)
    assert found.same[: step - 1] == list(range(1, step))
    news = [one for one in found.differences if not one.follows]
    assert {one.left for one in news} == {step}


def test_a_run_is_the_same_as_itself():
    found = diff(played(conversation()), played(conversation(), "right"))
    assert found.identical
    assert found.same == list(range(1, 11))
    assert found.tools == {"search": (9, 9)}


def test_independent_calls_that_are_removed_added_and_reordered_are_named():
    asked = [alone(number) for number in range(8)]
    left = played(asked)
    removed = diff(left, played([*asked[:3], *asked[4:]]))
    assert [(one.kind, one.left, one.right) for one in removed.differences] == [("removed", 4, None)]
    added = diff(left, played([*asked[:5], alone(99), *asked[5:]]))
    assert [(one.kind, one.left, one.right) for one in added.differences] == [("added", None, 6)]
    swapped = diff(left, played([*asked[:2], asked[3], asked[2], *asked[4:]]))
    assert [one.kind for one in swapped.differences] == ["moved"]
    assert swapped.differences[0].left in (3, 4)
    assert len(moved(swapped.pairs)) == 1
    changed = diff(left, played([*asked[:3], alone(99), *asked[4:]]))
    assert {(one.left, one.right) for one in changed.differences} == {(4, 4)}
    assert changed.differences[0].path == "request.messages[0].content"


def test_new_ids_are_no_difference():
    script = json.loads(json.dumps(conversation()).replace('"call_', '"fresh_'))
    assert diff(played(conversation()), played(script, "right")).identical


def test_long_values_that_begin_the_same_are_compared_as_a_whole():
    """A step repeats the difference of another one only if their whole values are the same."""
    sides: list[Script] = []
    for side in ("left", "right"):
        script = conversation()
        for step, end in ((2, "2"), (3, "3"), (4, "3")):
            script[step]["body"]["user"] = f"{'same ' * 100}{side} {'more ' * 100}{end}"
        sides.append(script)
    found = diff(*(played(script) for script in sides))
    told = [(one.left, one.path, one.follows) for one in found.differences]
    assert told == [(3, "request.user", False), (4, "request.user", False), (5, "request.user", True)]
    first = found.differences[0]
    assert "left" in first.left_value and "right" in first.right_value
    assert max(map(len, (first.left_value, first.right_value))) <= 202


def test_the_outcome_is_compared():
    left = played(conversation())
    found = diff(left, played(conversation(), "right", exit=1))
    assert found.differences == []
    assert found.outcome is not None
    assert (found.outcome.path, found.outcome.tape, found.outcome.now) == (
        "status",
        "success",
        "failure",
    )
    found = diff(left, played(conversation(), "right", said="other\n"))
    assert found.outcome is not None
    assert (found.outcome.path, found.outcome.now) == ("stdout line 1", "other")


def test_many_runs_show_where_their_flows_part():
    short = conversation()[:4] + conversation()[9:]
    runs = [played(conversation(), f"agent-{n}") for n in range(3)]
    runs += [played(short, "agent-3"), played([], "agent-4")]
    found = variability(runs)
    assert [(len(path.steps), path.runs) for path in found.paths] == [
        (10, ["agent-0", "agent-1", "agent-2"]),
        (5, ["agent-3"]),
        (0, ["agent-4"]),
    ]
    assert [(fork.step, fork.ways) for fork in found.forks] == [
        (1, {"chat →search": ["agent-0", "agent-1", "agent-2", "agent-3"], "(end)": ["agent-4"]}),
        (5, {"chat →search": ["agent-0", "agent-1", "agent-2"], "chat": ["agent-3"]}),
    ]
    assert found.distances[0] == [0, 0, 0, 5, 9]
    assert found.spreads["steps"].to_json() == {"min": 0, "median": 10, "max": 10}
