"""The timed workloads: calls of the real OpenAI SDK over a transport that answers in the process.

Between two timed calls there is a pause, as there is while a provider thinks; background threads of an
instrumentation work during it. Their cost shows in the processor time, and in the workload without a
pause, where they compete with the caller for the interpreter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx2
import openai
from clocks import call_ns

from playhead_cli.demo.shapes import openai_chat, sse

STEPS = 50
SYSTEM = "You are a careful agent. " * 80
CHUNKS = 200
PAUSE_S = 0.005
_RESULT = "The quick brown fox jumps over the lazy dog; " * 44

Message = dict[str, object]


class _Events(httpx2.SyncByteStream):
    def __init__(self, events: list[bytes]) -> None:
        self.events = events

    def __iter__(self) -> Iterator[bytes]:
        yield from self.events


class Transport(httpx2.BaseTransport):
    """Answers every request at once without a socket, so that only the caller's own path is timed."""

    def __init__(self) -> None:
        whole = openai_chat.completion("It is done.")
        self._json = sse.encode(whole)
        words = " ".join(["word"] * (CHUNKS - 3))
        self._events = sse.chat(openai_chat.chunks(openai_chat.completion(words)))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = request.read()
        if b'"stream":true' in body:
            head = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=head, stream=_Events(self._events))
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=self._json)


def client() -> openai.OpenAI:
    """A client over `Transport`."""
    return openai.OpenAI(
        api_key="bench",
        base_url="http://bench.invalid/v1",
        http_client=httpx2.Client(transport=Transport()),
    )


def history(steps: int) -> list[Message]:
    """The messages of an agent after ``steps`` tool calls: about 2.3 KB a step."""
    messages: list[Message] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "Go on."},
    ]
    for step in range(steps):
        call = openai_chat.tool_call(f"call_{step}", "search", {"query": f"step {step}", "limit": 5})
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append(
            {"role": "tool", "tool_call_id": f"call_{step}", "content": f"{step}: {_RESULT}"}
        )
    return messages


def _call(gpt: openai.OpenAI, messages: list[Message], pause_s: float = PAUSE_S) -> int:
    time.sleep(pause_s)
    begin = call_ns()
    gpt.chat.completions.create(model="gpt-4o", messages=messages)  # type: ignore[arg-type]
    return call_ns() - begin


def small(gpt: openai.OpenAI, count: int) -> list[float]:
    """Calls with one short message; ns each."""
    messages = history(0)[1:]
    return [_call(gpt, messages) for _ in range(count)]


def hurried(gpt: openai.OpenAI, count: int) -> list[float]:
    """Calls with one short message without a pause; ns each."""
    messages = history(0)[1:]
    return [_call(gpt, messages, 0) for _ in range(count)]


def repeated(gpt: openai.OpenAI, count: int) -> list[float]:
    """Calls with the same 115 KB history; ns each."""
    messages = history(STEPS)
    return [_call(gpt, messages) for _ in range(count)]


def growing(gpt: openai.OpenAI, count: int) -> list[float]:
    """Agents whose history grows from nothing to 115 KB in 50 calls; mean ns per call of each agent."""
    messages = history(STEPS)
    return [
        sum(_call(gpt, messages[: 2 + 2 * step]) for step in range(STEPS + 1)) / (STEPS + 1)
        for _ in range(count)
    ]


def streamed(gpt: openai.OpenAI, count: int) -> list[float]:
    """Streams of 200 chunks; ns per chunk of each stream, from the headers to the end."""
    taken: list[float] = []
    messages = history(0)[1:]
    for _ in range(count):
        time.sleep(PAUSE_S)
        stream = gpt.chat.completions.create(model="gpt-4o", messages=messages, stream=True)  # type: ignore[arg-type]
        begin = call_ns()
        chunks = sum(1 for _ in stream)
        taken.append((call_ns() - begin) / chunks)
    return taken


WORKLOADS: dict[str, tuple[Callable[[openai.OpenAI, int], list[float]], int, int]] = {
    "small call": (small, 60, 1),
    "small call, no pause": (hurried, 60, 1),
    "115 KB, repeated": (repeated, 12, 1),
    "115 KB, growing": (growing, 1, STEPS + 1),
    "chunk": (streamed, 8, CHUNKS),
}
"""Name → (function, repetitions per round, number of units of which one repetition is the mean)."""
