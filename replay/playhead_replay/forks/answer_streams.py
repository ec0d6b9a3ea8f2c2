"""Converts a complete answer into the event stream that its provider would send."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]
DONE = b"data: [DONE]\n\n"


def streamed(wire: str, whole: Json) -> list[bytes] | None:
    """The events of the stream; None if streams of this wire format are not supported."""
    make = MAKERS.get(wire)
    return None if make is None else list(make(whole))


def _data(value: Json) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def _named(value: Json) -> bytes:
    return f"event: {value['type']}\n".encode() + _data(value)


def _chat(whole: Json) -> Iterator[bytes]:
    head = {name: value for name, value in whole.items() if name not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"

    def chunk(index: int, delta: Json, reason: str | None = None) -> bytes:
        return _data({**head, "choices": [{"index": index, "delta": delta, "finish_reason": reason}]})

    choices: list[Json] = whole.get("choices") or []
    for index, choice in enumerate(choices):
        message: Json = dict(choice.get("message") or {})
        calls: list[Json] = message.pop("tool_calls", None) or []
        absent = {name: None for name, value in message.items() if value is None}
        yield chunk(index, {"role": message.pop("role", "assistant"), **absent})
        for name, value in message.items():
            if value is not None:
                yield chunk(index, {name: value})
        for place, call in enumerate(calls):
            yield chunk(index, {"tool_calls": [{**call, "index": place}]})
    for index, choice in enumerate(choices):
        yield chunk(index, {}, choice.get("finish_reason"))
    if whole.get("usage") is not None:
        yield _data({**head, "choices": [], "usage": whole["usage"]})
    yield DONE


def _responses(whole: Json) -> Iterator[bytes]:
    for number, event in enumerate(_of_response(whole)):
        yield _named({"type": event["type"], "sequence_number": number, **event})


def _of_response(whole: Json) -> Iterator[Json]:
    begun: Json = {**whole, "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(whole.get("output") or []):
        at: Json = {"item_id": item.get("id"), "output_index": index}
        empty: Json = {
            name: [] if name in ("content", "summary") else value for name, value in item.items()
        }
        if "arguments" in item:
            empty["arguments"] = ""
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        for number, part in enumerate(item.get("content") or []):
            yield from _part(part, {**at, "content_index": number})
        if "arguments" in item:
            kind, said = "response.function_call_arguments", item["arguments"]
            yield {"type": f"{kind}.delta", **at, "delta": said}
            yield {"type": f"{kind}.done", **at, "arguments": said, "name": item.get("name")}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    last = {"completed": "completed", "incomplete": "incomplete"}.get(str(whole.get("status")), "failed")
    yield {"type": f"response.{last}", "response": whole}


def _part(part: Json, at: Json) -> Iterator[Json]:
    kind = str(part.get("type"))
    field = "refusal" if kind == "refusal" else "text"
    yield {"type": "response.content_part.added", **at, "part": {**part, field: ""}}
    if isinstance(part.get(field), str):
        more: Json = {"logprobs": []} if kind == "output_text" else {}
        yield {"type": f"response.{kind}.delta", **at, "delta": part[field], **more}
        yield {"type": f"response.{kind}.done", **at, field: part[field], **more}
    yield {"type": "response.content_part.done", **at, "part": part}


def _messages(whole: Json) -> Iterator[bytes]:
    usage: Json = whole.get("usage") or {}
    begun: Json = {**whole, "content": [], "stop_reason": None, "stop_sequence": None}
    yield _named({"type": "message_start", "message": begun})
    for index, block in enumerate(whole.get("content") or []):
        empty, deltas = _block(block)
        yield _named({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
            yield _named({"type": "content_block_delta", "index": index, "delta": delta})
        yield _named({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": whole.get("stop_reason"), "stop_sequence": whole.get("stop_sequence")}
    spent = {"output_tokens": usage.get("output_tokens", 0)}
    yield _named({"type": "message_delta", "delta": ended, "usage": spent})
    yield _named({"type": "message_stop"})


def _block(block: Json) -> tuple[Json, list[Json]]:
    kind = block.get("type")
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block.get("text", "")}]
    if kind == "thinking":
        deltas = [
            {"type": "thinking_delta", "thinking": block.get("thinking", "")},
            {"type": "signature_delta", "signature": block.get("signature", "")},
        ]
        return {**block, "thinking": "", "signature": ""}, deltas
    if "input" in block:
        said = json.dumps(block["input"], ensure_ascii=False)
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": said}]
    return block, []


MAKERS: dict[str, Callable[[Json], Iterator[bytes]]] = {
    "openai.chat": _chat,
    "openai.responses": _responses,
    "anthropic.messages": _messages,
}
