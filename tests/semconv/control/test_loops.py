"""Loops in what a run requests."""

import itertools
import json
from typing import Any

import pytest

from playhead_core.control.loops import LoopFinder, action_of, loops_in

URL = "POST http://provider/v1/chat/completions"


class Agent:
    """An agent whose requests a `LoopFinder` sees. ``hook``: its tools are requests of their own."""

    def __init__(self, hook: bool, finder: LoopFinder | None = None) -> None:
        self.finder = finder or LoopFinder()
        self._hook = hook
        self._ids = itertools.count()
        self._messages: list[dict[str, Any]] = [{"role": "user", "content": "What is the policy?"}]
        self._ask()

    def _ask(self) -> None:
        body = json.dumps({"model": "loop", "messages": self._messages}).encode()
        self.finder.add("http", URL, body)

    def calls(self, name: str, arguments: str, result: str) -> bool:
        """A call of a tool, and the request with its result. Returns whether it is a loop now."""
        id = f"c{next(self._ids)}"
        call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        if self._hook:
            self.finder.add("tool", name, arguments.encode(), id)
            self.finder.answered(id, result)
        self._messages.append({"role": "assistant", "tool_calls": [call]})
        self._messages.append({"role": "tool", "tool_call_id": id, "content": result})
        self._ask()
        return self.finder.is_loop


@pytest.mark.parametrize("hook", [True, False])
def test_equal_calls_with_equal_results_are_a_loop_at_the_third(hook: bool):
    agent = Agent(hook)
    assert [agent.calls("search", '{"q": "refund"}', "[]") for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("hook", [True, False])
def test_an_agent_that_polls_or_pages_is_in_no_loop(hook: bool):
    polls, pages = Agent(hook), Agent(hook)
    for number in range(20):
        assert not polls.calls("status", '{"job": 1}', f"{number} of 20 done")
        assert not pages.calls("list", json.dumps({"page": number}), '["a", "b"]')


@pytest.mark.parametrize("hook", [True, False])
@pytest.mark.parametrize("period", range(1, 7))
def test_a_loop_of_several_tools_is_found(period: int, hook: bool):
    agent = Agent(hook)
    names = [f"tool{number}" for number in range(period)]
    found = [agent.calls(name, "{}", "none") for _ in range(4) for name in names]
    assert found.index(True) == 3 * period - 1


def test_equal_requests_without_results_between_may_poll():
    finder = LoopFinder()
    for _ in range(20):
        finder.add("http", URL, b'{"messages": [{"role": "user", "content": "turn"}]}')
        finder.add("tool", "read_sensor", b"{}")
        assert not finder.is_loop


@pytest.mark.parametrize(("failed", "found"), [(False, 3), (True, 6)])
def test_equal_requests_with_equal_answers_are_a_loop_and_retries_last_longer(failed: bool, found: int):
    finder = LoopFinder()
    for turn in range(2):
        for number in range(found):
            assert not finder.is_loop, (turn, number)
            finder.add("tool", "look", b'{"q": "same"}', number)
            if number < found - 1:  # the last one has no answer yet
                if failed:
                    finder.failed(number)
                finder.answered(number, "nothing")
        assert finder.is_loop
        finder.clear()


def test_equal_requests_at_the_same_time_are_no_loop():
    finder = LoopFinder()
    for number in range(9):
        finder.add("tool", "look", b'{"q": "same"}', number)
        assert not finder.is_loop
    for number in range(9):
        finder.answered(number, "nothing")
        assert not finder.is_loop
    for number in (9, 10):  # the last of those at the same time is the first of three in a row
        finder.add("tool", "look", b'{"q": "same"}', number)
        finder.answered(number, "nothing")
    assert finder.is_loop


@pytest.mark.parametrize("hook", [True, False])
def test_equal_agents_side_by_side_are_in_no_loop(hook: bool):
    finder = LoopFinder()
    agents = [Agent(hook, finder) for _ in range(6)]
    assert [agent.calls("search", '{"q": "refund"}', "[]") for agent in agents] == [False] * 6


def test_equal_agents_one_after_the_other_are_in_a_loop():
    finder, found = LoopFinder(), list[bool]()
    for _ in range(3):
        agent = Agent(False, finder)
        finder.answered(None, "search")
        found.append(agent.calls("search", '{"q": "refund"}', "[]"))
    assert found == [False, False, True]


@pytest.mark.parametrize("answer", [None, "different"])
def test_equal_requests_without_equal_answers_are_no_loop(answer: str | None):
    finder = LoopFinder()
    for number in range(20):
        finder.add("http", "GET http://host/job/1", b"", number)
        if answer:
            finder.answered(number, f"{answer} {number}")
        assert not finder.is_loop


def test_results_that_report_an_error_or_a_wait_may_repeat_longer():
    for result, rounds in (("[]", 3), ('{"error": "timeout"}', 6), ('{"state": "queued"}', 20)):
        agent = Agent(hook=False)
        found = [agent.calls("job", '{"n": 1}', result) for _ in range(rounds)]
        assert found == [False] * (rounds - 1) + [True], result


ITEMS = [
    [
        {"type": "reasoning", "id": "rs_{n}", "encrypted_content": "gAAA{n}"},
        {"type": "function_call", "call_id": "c{n}", "name": "search", "arguments": '{{"q":"x"}}'},
        {"type": "function_call_output", "call_id": "c{n}", "output": "[]"},
    ],
    [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Attempt {n}."},
                {"type": "tool_use", "id": "tu_{n}", "name": "search", "input": {"q": "x"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "tu_{n}", "content": "[]"}]},
    ],
    [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "search", "args": {"q": "x"}}, "thoughtSignature": "s{n}"}
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "search", "response": {"r": []}}}]},
    ],
]


@pytest.mark.parametrize(
    ("field", "items"),
    list(zip(("input", "messages", "contents"), ITEMS, strict=True)),
    ids=["responses", "anthropic", "gemini"],
)
def test_ids_and_words_of_a_model_do_not_count(field: str, items: list[dict[str, Any]]):
    finder, history, found = LoopFinder(), [{"role": "user", "content": "question"}], list[bool]()
    for number in range(4):
        finder.add("http", URL, json.dumps({field: history}).encode())
        found.append(finder.is_loop)
        history += json.loads(json.dumps(items).replace("{n}", str(number)).replace("{{", "{"))
    assert found == [False, False, False, True]


def test_a_loop_of_a_finished_run_has_its_ends_and_its_rounds():
    names = ["plan", *["search", "read"] * 4, "answer"]
    actions = [action_of(name, {"q": 1}, [], failed=False) for name in names]
    (loop,) = loops_in(actions)
    assert (loop.first, loop.last, loop.period, loop.times) == (1, 8, 2, 4)


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"{", b"[" * 100_000, b'{"messages": 1}', b'{"input": "x"}']
)
def test_bodies_that_are_no_conversation_are_taken_as_they_are(body: bytes):
    finder = LoopFinder()
    for number in range(3):
        finder.add("http", URL, body, number)
        finder.answered(number, "same")
    assert finder.is_loop
