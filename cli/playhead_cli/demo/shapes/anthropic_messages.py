"""Anthropic messages: ``POST /v1/messages``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from playhead_cli.demo.shapes.sse import Json, pieces

MODEL = "claude-sonnet-5-5"


def usage(input: int = 15, output: int = 7, *, cache_read: int = 0, cache_write: int = 0) -> Json:
    """Tokens of one call; cached tokens are not part of ``input``, as in the API."""
    return {
        "input_tokens": input,
        "cache_creation_input_tokens": cache_write,
        "cache_read_input_tokens": cache_read,
        "output_tokens": output,
        "service_tier": "standard",
    }


def text(value: str) -> Json:
    """Return a text block."""
    return {"type": "text", "text": value, "citations": None}


def thinking(value: str, *, signature: str = "c2lnbmF0dXJl") -> Json:
    """Return a thinking block with its signature."""
    return {"type": "thinking", "thinking": value, "signature": signature}


def tool_use(id: str, name: str, input: Json) -> Json:
    """Return a tool call."""
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def message(
    content: Sequence[Json] | str,
    *,
    id: str = "msg_01",
    model: str = MODEL,
    stop_reason: str | None = None,
    usage: Json | None = None,
) -> Json:
    """Return a whole message. It stops with ``tool_use`` if a block is one, else with ``end_turn``."""
    blocks = [text(content)] if isinstance(content, str) else list(content)
    called = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": stop_reason or ("tool_use" if called else "end_turn"),
        "stop_sequence": None,
        "usage": usage or _usage(),
    }


def events(whole: Json) -> Iterator[Json]:
    """Yield the same message as a stream: ``message_start`` … ``message_stop``, with a ping in it."""
    begun: Json = {
        **whole,
        "content": [],
        "stop_reason": None,
        "usage": {**whole["usage"], "output_tokens": 1},
    }
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(whole["content"]):
        empty, deltas = _block(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        if index == 0:
            yield {"type": "ping"}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": whole["stop_sequence"]},
        "usage": {"output_tokens": whole["usage"]["output_tokens"]},
    }
    yield {"type": "message_stop"}


_usage = usage


def _block(block: Json) -> tuple[Json, list[Json]]:
    if block["type"] == "text":
        cut = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        return {**block, "text": ""}, cut
    if block["type"] == "thinking":
        cut = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        cut.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, cut
    whole = json.dumps(block["input"])
    cut = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(whole)]]
    return {**block, "input": {}}, cut
