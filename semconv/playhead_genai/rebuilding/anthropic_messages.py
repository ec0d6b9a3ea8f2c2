"""Answers of Anthropic's messages, plain and streamed."""

from __future__ import annotations

from collections.abc import Iterable

from playhead_genai.messages import (
    Compaction,
    Generic,
    Part,
    Reasoning,
    ServerToolCall,
    ServerToolCallResponse,
    Text,
    ToolCall,
)
from playhead_genai.providers.catalogue import path_of
from playhead_genai.providers.reading import Object, mapping, parsed_arguments, sequence
from playhead_genai.rebuilding.calls import ModelAnswer
from playhead_genai.rebuilding.rendering import (
    AnswerForm,
    Event,
    NotRebuilt,
    Rendering,
    arguments_text,
)
from playhead_semconv import attributes as a

_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_call": "tool_use",
    "content_filter": "refusal",
}


def body(made: Rendering) -> Object:
    """Return a message."""
    parts = [part for message in made.answer.messages for part in message.parts]
    blocks: list[Object] = []
    for part in parts:
        block = _block(made, part, len(blocks))
        if block is None:
            made.leave_out(part.type)
        else:
            blocks.append(block)
    called = any(isinstance(part, ToolCall) for part in parts)
    reason = made.finish_reason(0, _REASONS, called=called)
    return {
        "id": made.id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": made.model(),
        "content": blocks,
        "stop_reason": None if reason == "error" else reason,
        "stop_sequence": None,
        "usage": _usage(made.answer),
    }


def _block(made: Rendering, part: Part, number: int) -> Object | None:
    if isinstance(part, Text):
        return {"type": "text", "text": part.content} | part.extras
    if isinstance(part, Reasoning):
        if part.extras.get("redacted"):
            more = {name: value for name, value in part.extras.items() if name != "redacted"}
            return {"type": "redacted_thinking"} | more
        return {"type": "thinking", "thinking": part.content, "signature": ""} | part.extras
    if isinstance(part, ToolCall):
        given = part.arguments
        given = parsed_arguments(given) if isinstance(given, str) else given
        found: Object = {
            "type": "tool_use",
            "id": made.call_id(part.id, number, "toolu_"),
            "name": part.name,
        }
        empty: Object = {}
        return found | {"input": empty if given is None else given} | part.extras
    if isinstance(part, ServerToolCall):
        more = {name: value for name, value in part.server_tool_call.items() if name != "type"}
        return {"type": "server_tool_use", "id": part.id, "name": part.name} | more
    if isinstance(part, ServerToolCallResponse):
        said: Object = part.server_tool_call_response
        more = {name: value for name, value in said.items() if name != "type"}
        return {"type": str(said.get("type")) + "_tool_result", "tool_use_id": part.id} | more
    if isinstance(part, Compaction):
        return {"type": "compaction", "content": part.content} | part.extras
    return {"type": part.type} | part.extras if isinstance(part, Generic) else None


def _usage(answer: ModelAnswer) -> Object:
    """Return the counts; tokens from and to the cache are not part of ``input_tokens`` here."""
    read = answer.count(a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS)
    write = answer.count(a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS)
    whole = answer.count(a.GEN_AI_USAGE_INPUT_TOKENS) or 0
    found: Object = {
        "input_tokens": max(0, whole - (read or 0) - (write or 0)),
        "output_tokens": answer.count(a.GEN_AI_USAGE_OUTPUT_TOKENS) or 0,
    }
    if read is not None:
        found["cache_read_input_tokens"] = read
    if write is not None:
        found["cache_creation_input_tokens"] = write
    thought = answer.count(a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS)
    return found | ({} if thought is None else {"output_tokens_details": {"thinking_tokens": thought}})


_GROWING = {"text": "text", "thinking": "thinking"}
"""Type of a block → field that grows in a stream."""


def stream(made: Rendering, whole: Object) -> Iterable[Event]:
    """Cut a message into events."""
    usage = mapping(whole["usage"])
    begun: Object = whole | {"content": [], "stop_reason": None}
    begun["usage"] = usage | {"output_tokens": 0}
    yield _event("message_start", message=begun)
    for index, block in enumerate(map(mapping, sequence(whole["content"]))):
        kind = str(block["type"])
        empty: Object = {}
        deltas: list[Object] = []
        if kind in _GROWING:
            field = _GROWING[kind]
            empty[field] = ""
            deltas.append({"type": f"{kind}_delta", field: block[field]})
        if kind == "thinking":
            empty["signature"] = ""
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        if kind in ("tool_use", "server_tool_use") and "input" in block:
            empty["input"] = {}
            deltas.append({"type": "input_json_delta", "partial_json": arguments_text(block["input"])})
        yield _event("content_block_start", index=index, content_block=block | empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage={"output_tokens": usage["output_tokens"]})
    yield _event("message_stop")


def _event(kind: str, **fields: object) -> Event:
    return kind, {"type": kind, **fields}


def _is_streamed(request: Object, url: str) -> bool:
    if "/invoke-with-response-stream" in path_of(url):
        raise NotRebuilt("a stream of Bedrock cannot be rebuilt")
    return request.get("stream") is True


FORM = AnswerForm(body, stream, _is_streamed)
