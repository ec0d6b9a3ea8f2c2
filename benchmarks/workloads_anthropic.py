"""The workloads of `workloads` for the Anthropic SDK, over a transport that answers in the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import anthropic
import httpx2
from clocks import call_ns
from workloads import CHUNKS, PAUSE_S, STEPS, SYSTEM, Message, history

from playhead_cli.demo.shapes import anthropic_messages, sse

MODEL = "claude-sonnet-5-5"


class _Events(httpx2.SyncByteStream):
    def __init__(self, events: list[bytes]) -> None:
        self.events = events

    def __iter__(self) -> Iterator[bytes]:
        yield from self.events


class Transport(httpx2.BaseTransport):
    """Answers every request at once without a socket."""

    def __init__(self) -> None:
        self._whole = sse.encode(anthropic_messages.message("It is done."))
        words = " ".join(["word"] * (CHUNKS - 5))
        self._events = sse.events(anthropic_messages.events(anthropic_messages.message(words)))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if b'"stream":true' in request.read():
            head = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=head, stream=_Events(self._events))
        head = {"content-type": "application/json"}
        return httpx2.Response(200, headers=head, content=self._whole)


def client() -> anthropic.Anthropic:
    """A client over `Transport`."""
    return anthropic.Anthropic(
        api_key="bench",
        base_url="http://bench.invalid",
        http_client=httpx2.Client(transport=Transport()),
    )


def messages(steps: int) -> list[Message]:
    """The messages of an agent after ``steps`` tool calls: about 2.3 KB a step."""
    found: list[Message] = []
    for message in history(steps)[1:]:
        content = message["content"]
        if message["role"] == "assistant":
            use = {"query": f"step {len(found)}", "limit": 5}
            content = [anthropic_messages.tool_use(f"call_{len(found)}", "search", use)]
        elif message["role"] == "tool":
            id = f"call_{len(found) - 1}"
            content = [{"type": "tool_result", "tool_use_id": id, "content": content}]
        role = "assistant" if message["role"] == "assistant" else "user"
        found.append({"role": role, "content": content})
    return found


def _call(claude: anthropic.Anthropic, asked: list[Message], pause_s: float = PAUSE_S) -> int:
    system = SYSTEM if len(asked) > 1 else anthropic.omit
    time.sleep(pause_s)
    begin = call_ns()
    claude.messages.create(model=MODEL, max_tokens=1000, messages=asked, system=system)  # type: ignore[arg-type]
    return call_ns() - begin


def small(claude: anthropic.Anthropic, count: int) -> list[float]:
    """Calls with one short message; ns each."""
    asked = messages(0)
    return [_call(claude, asked) for _ in range(count)]


def hurried(claude: anthropic.Anthropic, count: int) -> list[float]:
    """Calls with one short message without a pause; ns each."""
    asked = messages(0)
    return [_call(claude, asked, 0) for _ in range(count)]


def repeated(claude: anthropic.Anthropic, count: int) -> list[float]:
    """Calls with the same 115 KB history; ns each."""
    asked = messages(STEPS)
    return [_call(claude, asked) for _ in range(count)]


def streamed(claude: anthropic.Anthropic, count: int) -> list[float]:
    """Streams of 200 events; ns per event of each stream, from the headers to the end."""
    taken: list[float] = []
    asked = messages(0)
    for _ in range(count):
        time.sleep(PAUSE_S)
        stream = claude.messages.create(model=MODEL, max_tokens=1000, messages=asked, stream=True)  # type: ignore[arg-type]
        begin = call_ns()
        events = sum(1 for _ in stream)
        taken.append((call_ns() - begin) / events)
    return taken


WORKLOADS: dict[str, tuple[Callable[[anthropic.Anthropic, int], list[float]], int, int]] = {
    "small call": (small, 60, 1),
    "small call, no pause": (hurried, 60, 1),
    "115 KB, repeated": (repeated, 12, 1),
    "chunk": (streamed, 8, CHUNKS),
}
"""As in `workloads`."""
