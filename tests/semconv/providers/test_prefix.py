"""Request bodies that grow: old messages are not converted again, and nobody waits for the cache."""

import os
import threading
from typing import Any

import pytest
from support.answers.wires import dump

from playhead_genai.messages import InputMessage
from playhead_genai.providers import DIALECTS, Derived, PrefixCache, WireResponse, derive


class Counting:
    """A dialect that counts the messages it converts."""

    def __init__(self, wire: str) -> None:
        self._dialect = DIALECTS[wire]
        self.converted: list[Any] = []

    def message(self, item: Any) -> InputMessage:
        self.converted.append(item)
        return self._dialect.message(item)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialect, name)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    dialect = Counting("openai.chat")
    monkeypatch.setitem(DIALECTS.loaded, "openai.chat", dialect)
    return dialect


def message(number: int) -> dict[str, Any]:
    return {"role": "user" if number % 2 else "assistant", "content": f"message {number}"}


def ask(cache: PrefixCache | None, messages: list[Any], **fields: Any) -> Derived:
    return derive(
        "openai.chat", dump({"model": "m", "messages": messages, **fields}), WireResponse(), cache
    )


def test_messages_are_converted_once(counting: Counting):
    cache = PrefixCache()
    history = [message(i) for i in range(60)]
    for count in range(1, 60, 2):
        assert ask(cache, history[:count], temperature=count) == ask(
            None, history[:count], temperature=count
        )
    by_the_cache = counting.converted
    assert len(by_the_cache) == 59 + sum(range(1, 60, 2))


def test_a_changed_field_before_the_messages_is_no_miss(counting: Counting):
    cache = PrefixCache()
    history = [message(i) for i in range(10)]
    ask(cache, history)
    counting.converted.clear()
    body = dump({"metadata": {"step": 2}, "model": "n", "messages": [*history, message(10)]})
    derive("openai.chat", body, WireResponse(), cache)
    assert counting.converted == [message(10)]


def test_a_mark_that_wanders_costs_two_messages(counting: Counting):
    cache = PrefixCache()
    history = [message(i) for i in range(10)]
    ask(cache, [*history[:-1], history[-1] | {"cache_control": {}}])
    counting.converted.clear()
    ask(cache, [*history, message(10) | {"cache_control": {}}])
    assert counting.converted == [history[-1], message(10) | {"cache_control": {}}]


def test_branches_share_their_beginning(counting: Counting):
    cache = PrefixCache()
    system, histories = message(0), [[message(100 * i), message(100 * i + 1)] for i in range(1, 5)]
    for history in histories:
        ask(cache, [system, *history])
    counting.converted.clear()
    for history in histories:
        ask(cache, [system, *history])
    assert counting.converted == []


def test_the_cache_is_bounded(counting: Counting):
    cache = PrefixCache(capacity_bytes=2000)
    for number in range(100):
        ask(cache, [message(number)])
    counting.converted.clear()
    ask(cache, [message(0)])
    ask(cache, [message(99)])
    assert counting.converted == [message(0)]


def test_threads_share_a_cache():
    cache = PrefixCache(capacity_bytes=4000)
    history = [message(i) for i in range(40)]
    expected = {count: ask(None, history[:count]) for count in range(1, 40)}
    wrong: list[int] = []

    def work() -> None:
        wrong.extend(
            count
            for _ in range(20)
            for count, one in expected.items()
            if ask(cache, history[:count]) != one
        )

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_child_process_never_waits_for_the_cache():
    cache = PrefixCache()
    ask(cache, [message(0)])
    expected = ask(None, [message(0), message(1)])
    cache._lock.acquire()  # as a thread of the parent may hold it at the moment of the fork
    child = os.fork()
    if child == 0:
        os._exit(0 if ask(cache, [message(0), message(1)]) == expected else 1)
    cache._lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
