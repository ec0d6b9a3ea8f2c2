"""Bodies and streams of provider APIs as bytes, and checks of what is derived from them."""

import json
from typing import Any

from support.tapes.conventions import check_content

from playhead_genai.providers import Derived, WireResponse, derive

JSON = [("Content-Type", "application/json")]
STREAM = [("Content-Type", "text/event-stream; charset=utf-8")]


def dump(value: Any) -> bytes:
    """Compact JSON, as the SDKs send it."""
    return json.dumps(value, separators=(",", ":")).encode()


def sse(*events: Any) -> list[bytes]:
    """One chunk per event, named by its ``type`` if it has one."""
    names = [b"event: %s\n" % event["type"].encode() if "type" in event else b"" for event in events]
    return [name + b"data: %s\n\n" % dump(event) for name, event in zip(names, events, strict=True)]


DONE = b"data: [DONE]\n\n"


def derived(wire: str, request: Any, response: WireResponse | None = None) -> Derived:
    """The result of ``derive``; checks that its content attributes conform to the conventions."""
    found = derive(wire, dump(request), response or WireResponse())
    check_content(found.attributes)
    return found


def whole(body: Any, status: int = 200) -> WireResponse:
    """A JSON response."""
    return WireResponse(status, JSON, [dump(body)], True)


def stream(*chunks: bytes, complete: bool = True) -> WireResponse:
    """A streamed response."""
    return WireResponse(200, STREAM, chunks, complete)


def content(found: Derived, name: str) -> Any:
    """A content attribute (``input.messages``, …), decoded."""
    value = found.attributes[f"gen_ai.{name}"]
    assert isinstance(value, str)
    return json.loads(value)


CLAUDE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 7, "output_tokens": 3},
}
"""A short answer of Anthropic: 7 tokens in, 3 out."""
