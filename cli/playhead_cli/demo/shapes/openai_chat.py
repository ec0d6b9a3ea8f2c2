"""OpenAI chat completions: ``POST /v1/chat/completions``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from playhead_cli.demo.shapes.sse import Json, pieces

MODEL = "gpt-4o-2024-08-06"


def usage(prompt: int = 12, completion: int = 5, *, cached: int = 0, reasoning: int = 0) -> Json:
    """Tokens of one call; ``cached`` are part of ``prompt``, ``reasoning`` of ``completion``."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def tool_call(id: str, name: str, arguments: Json | str) -> Json:
    """One tool call; ``arguments`` as an object or as the (perhaps malformed) text of one."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def choice(
    content: str | None = None,
    *,
    tool_calls: Sequence[Json] = (),
    refusal: str | None = None,
    finish_reason: str | None = None,
    index: int = 0,
) -> Json:
    """One choice. The finish reason is ``tool_calls`` if there are any, else ``stop``."""
    message: Json = {"role": "assistant", "content": content, "refusal": refusal, "annotations": []}
    if tool_calls:
        message["tool_calls"] = list(tool_calls)
    reason = finish_reason or ("tool_calls" if tool_calls else "stop")
    return {"index": index, "message": message, "logprobs": None, "finish_reason": reason}


def completion(
    content: str | None = None,
    *,
    tool_calls: Sequence[Json] = (),
    refusal: str | None = None,
    finish_reason: str | None = None,
    choices: Sequence[Json] = (),
    id: str = "chatcmpl-1",
    model: str = MODEL,
    usage: Json | None = None,
) -> Json:
    """Return a whole answer; ``choices`` (made by `choice`, indices are set here) for ``n`` > 1."""
    given = list(choices) or [
        choice(content, tool_calls=tool_calls, refusal=refusal, finish_reason=finish_reason)
    ]
    return {
        "id": id,
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{**one, "index": index} for index, one in enumerate(given)],
        "usage": usage or _usage(),
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def chunks(whole: Json, *, include_usage: bool = True) -> Iterator[Json]:
    """Yield the same answer as a stream: choices interleaved, then usage in a last chunk."""
    head = {
        "id": whole["id"],
        "object": "chat.completion.chunk",
        "created": whole["created"],
        "model": whole["model"],
        "service_tier": whole["service_tier"],
        "system_fingerprint": whole["system_fingerprint"],
    }
    tail = {"usage": None} if include_usage else {}

    def chunk(index: int, delta: Json, reason: str | None = None) -> Json:
        one = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**head, "choices": [one], **tail}

    columns = [[(one["index"], delta) for delta in _deltas(one["message"])] for one in whole["choices"]]
    for row in range(max(len(column) for column in columns)):
        for column in columns:
            if row < len(column):
                yield chunk(*column[row])
    for one in whole["choices"]:
        yield chunk(one["index"], {}, one["finish_reason"])
    if include_usage:
        yield {**head, "choices": [], "usage": whole["usage"]}


_usage = usage


def _deltas(message: Json) -> Iterator[dict[str, Any]]:
    first: Json = {"role": "assistant", "content": None, "refusal": None}
    if message["content"] is not None:
        first["content"] = ""
    yield first
    for piece in pieces(message["content"] or ""):
        if piece:
            yield {"content": piece}
    for piece in pieces(message["refusal"] or ""):
        if piece:
            yield {"refusal": piece}
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        yield {
            "tool_calls": [
                {
                    "index": index,
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": function["name"], "arguments": ""},
                }
            ]
        }
        for piece in pieces(function["arguments"]):
            if piece:
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
