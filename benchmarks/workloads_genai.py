"""The workloads of `workloads` for google-genai, over a transport that answers in the process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import httpx
from clocks import call_ns
from google import genai
from google.genai import types
from workloads import CHUNKS, PAUSE_S, STEPS, SYSTEM, history

USAGE = {"promptTokenCount": 12, "candidatesTokenCount": 5, "totalTokenCount": 17}


def answer(text: str, reason: str = "STOP") -> bytes:
    """One answer, or one piece of a stream."""
    content = {"role": "model", "parts": [{"text": text}]}
    candidate = {"content": content, "finishReason": reason, "index": 0}
    said = {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "gemini-3-pro"}
    return json.dumps(said).encode()


class _Events(httpx.SyncByteStream):
    def __init__(self, events: list[bytes]) -> None:
        self.events = events

    def __iter__(self) -> Iterator[bytes]:
        yield from self.events


class Transport(httpx.BaseTransport):
    """Answers every request at once without a socket."""

    def __init__(self) -> None:
        self._whole = answer("It is done.")
        self._events = [b"data: " + answer("word ") + b"\r\n\r\n"] * CHUNKS

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        if "stream" in request.url.path:
            head = {"content-type": "text/event-stream"}
            return httpx.Response(200, headers=head, stream=_Events(self._events))
        return httpx.Response(200, headers={"content-type": "application/json"}, content=self._whole)


def client() -> genai.Client:
    """A client over `Transport`."""
    over = httpx.Client(transport=Transport())
    options = types.HttpOptions(base_url="http://bench.invalid", httpx_client=over)
    return genai.Client(api_key="bench", http_options=options)


def contents(steps: int) -> list[types.Content]:
    """The contents of an agent after ``steps`` tool calls: about 2.3 KB a step."""
    found: list[types.Content] = []
    for message in history(steps)[1:]:
        if message["role"] == "tool":
            part = types.Part.from_function_response(
                name="search", response={"result": str(message["content"])}
            )
        elif message["role"] == "assistant":
            part = types.Part.from_function_call(name="search", args={"query": "step", "limit": 5})
        else:
            part = types.Part.from_text(text=str(message["content"]))
        role = "model" if message["role"] == "assistant" else "user"
        found.append(types.Content(role=role, parts=[part]))
    return found


def _call(gemini: genai.Client, asked: list[types.Content], pause_s: float = PAUSE_S) -> int:
    config = types.GenerateContentConfig(system_instruction=SYSTEM if len(asked) > 1 else None)
    time.sleep(pause_s)
    begin = call_ns()
    gemini.models.generate_content(model="gemini-3-pro", contents=asked, config=config)
    return call_ns() - begin


def small(gemini: genai.Client, count: int) -> list[float]:
    """Calls with one short message; ns each."""
    return [_call(gemini, contents(0)) for _ in range(count)]


def hurried(gemini: genai.Client, count: int) -> list[float]:
    """Calls with one short message without a pause; ns each."""
    return [_call(gemini, contents(0), 0) for _ in range(count)]


def repeated(gemini: genai.Client, count: int) -> list[float]:
    """Calls with the same 115 KB history; ns each."""
    asked = contents(STEPS)
    return [_call(gemini, asked) for _ in range(count)]


def streamed(gemini: genai.Client, count: int) -> list[float]:
    """Streams of 200 chunks; ns per chunk of each stream, from the first to the end."""
    taken: list[float] = []
    asked = contents(0)
    for _ in range(count):
        time.sleep(PAUSE_S)
        stream = gemini.models.generate_content_stream(model="gemini-3-pro", contents=asked)
        parts = iter(stream)
        next(parts)
        begin = call_ns()
        chunks = sum(1 for _ in parts)
        taken.append((call_ns() - begin) / chunks)
    return taken


WORKLOADS: dict[str, tuple[Callable[[genai.Client, int], list[float]], int, int]] = {
    "small call": (small, 60, 1),
    "small call, no pause": (hurried, 60, 1),
    "115 KB, repeated": (repeated, 12, 1),
    "chunk": (streamed, 8, CHUNKS),
}
"""As in `workloads`."""
