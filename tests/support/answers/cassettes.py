"""Recorded traffic of providers: VCR files, where ``PLAYHEAD_CASSETTES`` names a folder of them.

Where it names none, there are a few exchanges of our own making.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from support.answers.event_streams import chunk, event
from support.servers.scripted import (
    Reply,
    anthropic_messages,
    openai_chat,
    openai_embeddings,
    openai_responses,
    sse,
)

FOLDER = os.environ.get("PLAYHEAD_CASSETTES")
NOT_KEPT = frozenset(("connection", "content-length", "transfer-encoding", "set-cookie", "date"))
"""Headers of an answer that belong to its connection, or that the scripted server writes itself."""
PIECE_BYTES = 300
"""So much of a streamed answer comes at once."""


@dataclass(frozen=True)
class Interaction:
    """One request and the answer to it."""

    provider: str
    """Name of the folder: that of the SDK whose test suite recorded it."""
    name: str
    """Name of the file."""
    method: str
    url: str
    body: bytes
    status: int
    headers: Sequence[tuple[str, str]]
    data: bytes
    """Body of the answer, still content-encoded."""

    @property
    def streamed(self) -> bool:
        kinds = [value for name, value in self.headers if name.lower() == "content-type"]
        return any("event" in kind for kind in kinds)

    def reply(self) -> Reply:
        """The answer, byte for byte, as the scripted server gives it."""
        headers = [(name, value) for name, value in self.headers if name.lower() not in NOT_KEPT]
        if not self.streamed:
            return Reply([self.data], self.status, headers)
        pieces = [self.data[at : at + PIECE_BYTES] for at in range(0, len(self.data), PIECE_BYTES)]
        return Reply(pieces, self.status, headers, framing="chunked")


def recorded(folder: str | None = FOLDER) -> list[Interaction]:
    """What the files below ``folder`` hold."""
    if not folder:
        return []
    files = sorted(Path(folder).rglob("*.yaml"))
    return [one for path in files for one in interactions(path)]


def interactions(path: Path) -> Iterator[Interaction]:
    """All interactions in one file."""
    document: Any = yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for interaction in document["interactions"]:
        request, response = interaction["request"], interaction["response"]
        headers = [
            (name, value)
            for name, values in response["headers"].items()
            for value in ([values] if isinstance(values, str) else values)
        ]
        yield Interaction(
            path.parent.name,
            path.stem,
            request["method"],
            request["uri"],
            _raw(request["body"]),
            response["status"]["code"],
            headers,
            _raw(response["body"]["string"]),
        )


def _raw(body: Any) -> bytes:
    return body if isinstance(body, bytes) else (body or "").encode()


def own() -> list[Interaction]:
    """Exchanges of our own making: plain, streamed, with tools, refused."""
    return [*_of_openai(), *_of_bedrock(), *_of_google()]


USER = [{"role": "user", "content": "Hello"}]
CALLS = [
    openai_chat.tool_call("call_1", "weather", {"city": "Oslo"}),
    openai_chat.tool_call("call_2", "weather", {"city": "Rome", "days": [1, 2]}),
]
TOOL = {"type": "function", "function": {"name": "weather", "description": "", "parameters": {}}}


def _made(provider: str, url: str, body: Any, data: bytes, kind: str, status: int = 200) -> Interaction:
    text = json.dumps(body).encode()
    return Interaction(provider, "own", "POST", url, text, status, [("content-type", kind)], data)


def _of_openai() -> Iterator[Interaction]:
    base, model = "https://api.openai.com/v1", {"model": "gpt-4o"}
    chat = model | {"messages": USER}
    whole = openai_chat.completion(
        choices=[
            openai_chat.choice("Héllo there"),
            openai_chat.choice(index=1, tool_calls=CALLS, finish_reason="tool_calls"),
        ],
        usage=openai_chat.usage(30, 9, cached=10, reasoning=4),
    )
    told = openai_responses.response(
        [openai_responses.message("Hi"), openai_responses.function_call("call_1", "f", {"a": 1})],
        usage=openai_responses.usage(30, 9, cached=10, reasoning=4),
    )
    missing = {"error": {"message": "No such model", "type": "invalid_request_error", "code": "gone"}}
    plain, streamed = "application/json", "text/event-stream; charset=utf-8"
    asked = chat | {"n": 2, "tools": [TOOL]}
    stream = asked | {"stream": True, "stream_options": {"include_usage": True}}
    yield _made("openai-v2", f"{base}/chat/completions", asked, sse.encode(whole), plain)
    chunks = b"".join(sse.chat(openai_chat.chunks(whole)))
    yield _made("openai-v2", f"{base}/chat/completions", stream, chunks, streamed)
    yield _made("openai-v2", f"{base}/chat/completions", chat, sse.encode(missing), plain, 404)
    events = b"".join(sse.events(openai_responses.events(told)))
    answer = model | {"input": "Hello"}
    yield _made("openai-v2", f"{base}/responses", answer, sse.encode(told), plain)
    yield _made("openai-v2", f"{base}/responses", answer | {"stream": True}, events, streamed)
    numbers = sse.encode(openai_embeddings.embeddings([[0.5, 1.0]]))
    embedded = model | {"input": ["Hello"], "encoding_format": "float"}
    yield _made("openai-v2", f"{base}/embeddings", embedded, numbers, plain)


def _of_bedrock() -> Iterator[Interaction]:
    base, amazon = "https://bedrock-runtime.us-east-1.amazonaws.com/model", "application/json"
    stream = "application/vnd.amazon.eventstream"
    call = {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Oslo"}}}
    usage = {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}
    told = {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hi"}, call]}},
        "stopReason": "tool_use",
        "usage": usage,
        "metrics": {"latencyMs": 1},
    }
    events = [
        event("messageStart", {"role": "assistant"}),
        event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hi"}}),
        event("contentBlockStop", {"contentBlockIndex": 0}),
        event("messageStop", {"stopReason": "end_turn"}),
        event("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}),
    ]
    asked = {"messages": [{"role": "user", "content": [{"text": "Hello"}]}]}
    yield _made("botocore", f"{base}/nova/converse", asked, json.dumps(told).encode(), amazon)
    yield _made("botocore", f"{base}/nova/converse-stream", asked, b"".join(events), stream)
    claude = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": USER}
    whole = anthropic_messages.message(
        [anthropic_messages.text("Hi"), anthropic_messages.tool_use("toolu_1", "f", {"a": 1})],
        usage=anthropic_messages.usage(30, 9, cache_read=10),
        stop_reason="tool_use",
    )
    pieces = b"".join(chunk(one) for one in anthropic_messages.events(whole))
    at = f"{base}/anthropic.claude-3-haiku"
    yield _made("botocore", f"{at}/invoke", claude, sse.encode(whole), amazon)
    yield _made("botocore", f"{at}/invoke-with-response-stream", claude, pieces, stream)


def _of_google() -> Iterator[Interaction]:
    place = "projects/p/locations/us-central1/publishers/google/models/gemini-2.5-flash"
    call = {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}
    for provider, version in (("google-genai", "v1beta1"), ("vertexai", "v1")):
        for action, kind in (("generateContent", ""), ("streamGenerateContent", "?alt=sse")):
            if provider == "vertexai" and kind:
                continue
            told = {
                "candidates": [
                    {
                        "content": {"role": "model", "parts": [{"text": "Hi"}, call]},
                        "finishReason": "STOP",
                    }
                ],
                "usageMetadata": {
                    "promptTokenCount": 3,
                    "candidatesTokenCount": 2,
                    "totalTokenCount": 5,
                },
                "modelVersion": "gemini-2.5-flash",
            }
            data = json.dumps(told).encode()
            url = f"https://us-central1-aiplatform.googleapis.com/{version}/{place}:{action}{kind}"
            asked = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
            if kind:
                yield _made(provider, url, asked, b"data: %b\r\n\r\n" % data, "text/event-stream")
            else:
                yield _made(provider, url, asked, data, "application/json")
