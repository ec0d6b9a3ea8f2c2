"""Answers of OpenAI's Responses API, plain and streamed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from playhead_genai.messages import (
    Blob,
    Compaction,
    Generic,
    Part,
    Reasoning,
    ServerToolCall,
    ServerToolCallResponse,
    Text,
    ToolCall,
)
from playhead_genai.providers.reading import Object, mapping, sequence
from playhead_genai.rebuilding.openai_chat import usage
from playhead_genai.rebuilding.rendering import AnswerForm, Event, Rendering, arguments_text
from playhead_semconv import attributes as a

_REASONS = {"stop": "completed", "tool_call": "completed", "error": "failed"}
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_DETAILS = {
    "input_tokens_details": {
        "cached_tokens": a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
        "cache_write_tokens": a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS,
        "text_tokens": a.GEN_AI_USAGE_TEXT_INPUT_TOKENS,
        "image_tokens": a.GEN_AI_USAGE_IMAGE_INPUT_TOKENS,
        "audio_tokens": a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS,
    },
    "output_tokens_details": {
        "reasoning_tokens": a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
        "text_tokens": a.GEN_AI_USAGE_TEXT_OUTPUT_TOKENS,
        "image_tokens": a.GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS,
        "audio_tokens": a.GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS,
    },
}


def body(made: Rendering) -> Object:
    """Return a response."""
    answer, request = made.answer, made.request
    parts = [part for message in answer.messages for part in message.parts]
    called = any(isinstance(part, ToolCall) for part in parts)
    reason = made.finish_reason(0, {"stop": "stop", "tool_call": "tool_call"}, called=called)
    incomplete = _INCOMPLETE.get(reason)
    return {
        "id": made.id("resp_"),
        "object": "response",
        "created_at": answer.created_s,
        "status": "incomplete" if incomplete else _REASONS.get(reason, "completed"),
        "error": None,
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "instructions": request.get("instructions"),
        "metadata": request.get("metadata") or {},
        "model": made.model(),
        "output": list(_items(made, parts)),
        "parallel_tool_calls": request.get("parallel_tool_calls", True),
        "previous_response_id": request.get("previous_response_id"),
        "service_tier": answer.attributes.get(a.OPENAI_RESPONSE_SERVICE_TIER),
        "temperature": request.get("temperature", 1.0),
        "text": request.get("text") or {"format": {"type": "text"}},
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": request.get("tools") or [],
        "top_p": request.get("top_p", 1.0),
        "usage": usage(answer, "input_tokens", "output_tokens", _DETAILS),
    }


def _items(made: Rendering, parts: Iterable[Part]) -> Iterator[Object]:
    """Yield the items of ``output``; texts that follow each other are one message."""
    texts: list[Object] = []
    calls = 0
    rest = list(parts)

    def message() -> Iterator[Object]:
        if texts:
            found = {"id": "msg_rebuilt", "type": "message", "role": "assistant", "status": "completed"}
            yield found | {"content": list(texts)}
            texts.clear()

    for number, part in enumerate(rest):
        if isinstance(part, Text):
            said: Object = {"type": "output_text", "text": part.content, "annotations": []}
            texts.append(said | part.extras)
            continue
        if isinstance(part, Generic) and part.type == "refusal":
            texts.append({"type": "refusal", "refusal": part.extras.get("content")})
            continue
        yield from message()
        if isinstance(part, Reasoning):
            yield _reasoning(part)
        elif isinstance(part, ToolCall):
            more = {name: value for name, value in part.extras.items() if name != "item_id"}
            yield {
                "type": "function_call",
                "id": part.extras.get("item_id") or f"fc_rebuilt_{calls}",
                "call_id": made.call_id(part.id, calls),
                "name": part.name,
                "arguments": made.arguments(part.arguments),
                "status": "completed",
            } | more
            calls += 1
        elif isinstance(part, ServerToolCall):
            yield _server_call(part, rest[number + 1 :])
        elif isinstance(part, Compaction):
            yield {"type": "compaction", "id": part.id} | part.extras
        elif isinstance(part, Generic):
            yield {"type": part.type} | part.extras
        elif not isinstance(part, ServerToolCallResponse | Blob):  # these go with their call
            made.leave_out(part.type)
    yield from message()


def _reasoning(part: Reasoning) -> Object:
    more = {name: value for name, value in part.extras.items() if name != "item_id"}
    found: Object = {"type": "reasoning", "id": part.extras.get("item_id") or "rs_rebuilt"}
    if "summary" in more:
        return found | {"content": [{"type": "reasoning_text", "text": part.content}]} | more
    summary = [{"type": "summary_text", "text": part.content}] if part.content else []
    return found | {"summary": summary} | more


def _server_call(part: ServerToolCall, after: list[Part]) -> Object:
    kind = str(part.server_tool_call.get("type") or part.name)
    found: Object = {"id": part.id, "type": f"{kind}_call", "status": "completed"}
    found |= {name: value for name, value in part.server_tool_call.items() if name != "type"}
    if part.name != kind:
        found["name"] = part.name
    if kind == "mcp":
        found["arguments"] = arguments_text(found.get("arguments"))
    for one in after:
        if isinstance(one, ServerToolCallResponse) and one.id == part.id:
            said = one.server_tool_call_response
            return found | {name: value for name, value in said.items() if name != "type"}
        if isinstance(one, Blob) and kind == "image_generation":
            found["result"] = one.content
        else:
            break
    return found


def stream(made: Rendering, whole: Object) -> Iterable[Event]:
    """Cut a response into events; the last one holds all of it."""
    numbers = count()

    def event(kind: str, **fields: object) -> Event:
        name = f"response.{kind}"
        return name, {"type": name, "sequence_number": next(numbers)} | fields

    begun: Object = whole | {
        "status": "in_progress",
        "output": [],
        "usage": None,
        "incomplete_details": None,
    }
    yield event("created", response=begun)
    yield event("in_progress", response=begun)
    for index, item in enumerate(map(mapping, sequence(whole["output"]))):
        at: Object = {"output_index": index, "item_id": item.get("id")}
        kind = item["type"]
        empty: Object = {}
        if kind in ("message", "function_call"):
            empty = {"content": []} if kind == "message" else {"arguments": ""}
        started = item | empty | ({"status": "in_progress"} if "status" in item else {})
        yield event("output_item.added", output_index=index, item=started)
        if kind == "function_call":
            yield event("function_call_arguments.delta", delta=item["arguments"], **at)
            yield event("function_call_arguments.done", arguments=item["arguments"], **at)
        for number, part in enumerate(map(mapping, sequence(item.get("content")))):
            field = {"output_text": "text", "refusal": "refusal"}.get(part.get("type", ""))
            if kind == "message" and field:
                there = at | {"content_index": number}
                yield event("content_part.added", part=part | {field: ""}, **there)
                yield event(f"{part['type']}.delta", delta=part[field], **there)
                yield event(f"{part['type']}.done", **{field: part[field]}, **there)
                yield event("content_part.done", part=part, **there)
        yield event("output_item.done", output_index=index, item=item)
    yield event(str(whole["status"]), response=whole)


FORM = AnswerForm(body, stream)
