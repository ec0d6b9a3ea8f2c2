"""Loops in what a run requests."""

import itertools
import json
from typing import Any

import pytest

from playhead_core.control.loops import LONGEST_PERIOD, LoopFinder

URL = "POST http://provider/v1/chat/completions"


class Agent:
    """An agent whose requests a `LoopFinder` sees. ``hook``: its tools are requests of their own."""

    def __init__(self, hook: bool) -> None:
        self.finder = LoopFinder()
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
            self.finder.add("tool", name, arguments.encode())
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
@pytest.mark.parametrize("period", range(1, LONGEST_PERIOD // 2 + 1))
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


def test_the_same_request_in_a_row_is_a_loop_and_counts_again_after_it():
    finder = LoopFinder()
    for turn in range(2):
        for number in range(3):
            assert not finder.is_loop, (turn, number)
            finder.add("tool", "look", b'{"q": "same"}')
        assert finder.is_loop
        finder.clear()


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"{", b"[" * 100_000, b'{"messages": 1}', b'{"input": "x"}']
)
def test_bodies_that_are_no_conversation_are_taken_as_they_are(body: bytes):
    finder = LoopFinder()
    for _ in range(3):
        finder.add("http", URL, body)
    assert finder.is_loop
