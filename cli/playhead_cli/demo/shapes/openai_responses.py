"""OpenAI responses: ``POST /v1/responses``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from playhead_cli.demo.shapes.sse import Json, pieces

MODEL = "gpt-5-2025-08-07"


def usage(input: int = 20, output: int = 8, *, cached: int = 0, reasoning: int = 0) -> Json:
    """Tokens of one call; ``cached`` are part of ``input``, ``reasoning`` of ``output``."""
    return {
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": input + output,
    }


def message(text: str = "", *, refusal: str | None = None, id: str = "msg_1") -> Json:
    """Return an output message with one text, or one refusal."""
    part: Json = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    if refusal is not None:
        part = {"type": "refusal", "refusal": refusal}
    return {"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def reasoning(summary: str = "", *, encrypted_content: str | None = None, id: str = "rs_1") -> Json:
    """Return a reasoning item; ``encrypted_content`` as sent where ``include`` asks for it."""
    parts = [{"type": "summary_text", "text": summary}] if summary else []
    item: Json = {"id": id, "type": "reasoning", "summary": parts}
    if encrypted_content is not None:
        item["encrypted_content"] = encrypted_content
    return item


def function_call(call_id: str, name: str, arguments: Json | str, *, id: str = "fc_1") -> Json:
    """Return a function call; ``arguments`` as an object or as the text of one."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "id": id,
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": text,
    }


def response(
    output: Sequence[Json],
    *,
    id: str = "resp_1",
    model: str = MODEL,
    status: str = "completed",
    usage: Json | None = None,
    previous_response_id: str | None = None,
) -> Json:
    """Return a whole response."""
    return {
        "id": id,
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": model,
        "output": list(output),
        "parallel_tool_calls": True,
        "previous_response_id": previous_response_id,
        "reasoning": {"effort": "medium", "summary": None},
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage or _usage(),
        "metadata": {},
    }


def events(whole: Json) -> Iterator[Json]:
    """The same response as a stream: ``response.created`` … ``response.completed``, numbered from 0."""
    for number, event in enumerate(_events(whole)):
        yield {"type": event["type"], "sequence_number": number, **event}


_usage = usage


def _events(whole: Json) -> Iterator[Json]:
    begun: Json = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        at: Json = {"item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
        if item["type"] == "message":
            for number, part in enumerate(item["content"]):
                yield from _content(part, {**at, "content_index": number})
        elif item["type"] == "reasoning":
            for number, part in enumerate(item["summary"]):
                yield from _summary(part, {**at, "summary_index": number})
        elif item["type"] == "function_call":
            kind = "response.function_call_arguments"
            for piece in pieces(item["arguments"]):
                yield {"type": f"{kind}.delta", **at, "delta": piece}
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield {"type": f"{kind}.done", **at, **done}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    final = {"completed": "response.completed", "incomplete": "response.incomplete"}
    yield {"type": final.get(whole["status"], "response.failed"), "response": whole}


def _begun(item: Json) -> Json:
    grows = {"message": "content", "reasoning": "summary", "function_call": "arguments"}[item["type"]]
    begun: Json = {**item, grows: "" if grows == "arguments" else []}
    if "status" in item:
        begun["status"] = "in_progress"
    return begun


def _content(part: Json, at: Json) -> Iterator[Json]:
    text = "text" if part["type"] == "output_text" else "refusal"
    kind = f"response.{part['type']}"
    extra: Json = {"logprobs": []} if text == "text" else {}
    yield {"type": "response.content_part.added", **at, "part": {**part, text: ""}}
    for piece in pieces(part[text]):
        yield {"type": f"{kind}.delta", **at, "delta": piece, **extra}
    yield {"type": f"{kind}.done", **at, text: part[text], **extra}
    yield {"type": "response.content_part.done", **at, "part": part}


def _summary(part: Json, at: Json) -> Iterator[Json]:
    yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.reasoning_summary_text.delta", **at, "delta": piece}
    yield {"type": "response.reasoning_summary_text.done", **at, "text": part["text"]}
    yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
