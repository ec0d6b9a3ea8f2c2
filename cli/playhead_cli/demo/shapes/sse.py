"""Server-sent events as bytes, one chunk per event."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]
DONE = b"data: [DONE]\n\n"
"""The last event of an OpenAI chat stream."""


def encode(value: Any) -> bytes:
    """Compact UTF-8 JSON, as providers send it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def data(value: Any) -> bytes:
    """One event without a name (OpenAI chat)."""
    return b"data: " + encode(value) + b"\n\n"


def named(value: Json) -> bytes:
    """One event whose name is its ``type`` (OpenAI responses, Anthropic)."""
    return b"event: " + str(value["type"]).encode() + b"\n" + data(value)


def chat(chunks: Iterable[Json]) -> list[bytes]:
    """Return the body of a streamed chat completion: one bytes object per event, then ``[DONE]``."""
    return [*(data(chunk) for chunk in chunks), DONE]


def events(values: Iterable[Json]) -> list[bytes]:
    """Return the body of a streamed response or message: one bytes object per event."""
    return [named(value) for value in values]


def pieces(text: str) -> list[str]:
    """Cut a text as models stream it: word by word, each with the space before it."""
    found: list[str] = []
    for word in text.split(" "):
        found.append(word if not found else " " + word)
    return found
