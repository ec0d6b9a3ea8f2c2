"""Answers of OpenAI's chat completions, plain and streamed."""

from __future__ import annotations

from collections.abc import Iterable

from playhead_genai.messages import Generic, OutputMessage, Reasoning, Text, ToolCall
from playhead_genai.providers.reading import Object, mapping, sequence
from playhead_genai.rebuilding.calls import ModelAnswer
from playhead_genai.rebuilding.rendering import AnswerForm, Event, Rendering
from playhead_semconv import attributes as a

_REASONS = {"tool_call": "tool_calls", "stop": "stop"}
_DETAILS = {
    "prompt_tokens_details": {
        "cached_tokens": a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
        "cache_write_tokens": a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS,
        "text_tokens": a.GEN_AI_USAGE_TEXT_INPUT_TOKENS,
        "image_tokens": a.GEN_AI_USAGE_IMAGE_INPUT_TOKENS,
        "audio_tokens": a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS,
    },
    "completion_tokens_details": {
        "reasoning_tokens": a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
        "text_tokens": a.GEN_AI_USAGE_TEXT_OUTPUT_TOKENS,
        "image_tokens": a.GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS,
        "audio_tokens": a.GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS,
    },
}


def body(made: Rendering) -> Object:
    """Return a chat completion."""
    answer = made.answer
    if not answer.messages:
        made.leave_out("messages")
    choices = [_choice(made, number, one) for number, one in enumerate(answer.messages)]
    at = answer.attributes
    found: Object = {
        "id": made.id("chatcmpl-"),
        "object": "chat.completion",
        "created": answer.created_s,
        "model": made.model(),
        "choices": choices,
        "usage": usage(answer, "prompt_tokens", "completion_tokens", _DETAILS),
        "service_tier": at.get(a.OPENAI_RESPONSE_SERVICE_TIER),
        "system_fingerprint": at.get(a.OPENAI_RESPONSE_SYSTEM_FINGERPRINT),
    }
    return found


def usage(
    answer: ModelAnswer, asked: str, answered: str, details: dict[str, dict[str, str]]
) -> Object | None:
    """Return counts of tokens under the names of an API of OpenAI; None if the span has none."""
    counts = answer.count(a.GEN_AI_USAGE_INPUT_TOKENS), answer.count(a.GEN_AI_USAGE_OUTPUT_TOKENS)
    if counts == (None, None):
        return None
    found: Object = {asked: counts[0] or 0, answered: counts[1] or 0, "total_tokens": 0}
    found["total_tokens"] = found[asked] + found[answered]
    for name, fields in details.items():
        values = {field: answer.count(attribute) for field, attribute in fields.items()}
        known = {field: value for field, value in values.items() if value is not None}
        if known:
            found[name] = known
    return found


def _choice(made: Rendering, number: int, message: OutputMessage) -> Object:
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    reason = made.finish_reason(number, _REASONS, called=bool(calls))
    return {
        "index": number,
        "message": _message(made, message),
        "logprobs": None,
        "finish_reason": None if reason == "error" else reason,
    }


def _message(made: Rendering, message: OutputMessage) -> Object:
    texts: list[str] = []
    calls: list[Object] = []
    found: Object = {"role": message.role or "assistant", "content": None, "refusal": None}
    for part in message.parts:
        if isinstance(part, Text):
            texts.append(part.content)
        elif isinstance(part, Reasoning):
            found["reasoning_content"] = found.get("reasoning_content", "") + part.content
        elif isinstance(part, ToolCall):
            calls.append(_call(made, part, len(calls)))
        elif isinstance(part, Generic) and part.type == "refusal":
            found["refusal"] = part.extras.get("content")
        else:
            made.leave_out(part.type)
    if texts:
        found["content"] = "".join(texts)
    if calls:
        found["tool_calls"] = calls
    return found | {name: value for name, value in message.extras.items() if name not in found}


def _call(made: Rendering, part: ToolCall, number: int) -> Object:
    kind = "custom" if part.extras.get("kind") == "custom" else "function"
    field = "input" if kind == "custom" else "arguments"
    more = {name: value for name, value in part.extras.items() if name != "kind"}
    function = {"name": part.name, field: made.arguments(part.arguments)}
    return {"id": made.call_id(part.id, number), "type": kind, kind: function} | more


def stream(made: Rendering, whole: Object) -> Iterable[Event]:
    """Cut a chat completion into chunks."""
    head = {name: value for name, value in whole.items() if name not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    wants_usage = mapping(made.request.get("stream_options")).get("include_usage") is True
    usage_field: Object = {"usage": None} if wants_usage else {}

    def chunk(index: int, delta: Object, reason: str | None = None) -> Event:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
        return "", head | {"choices": [choice]} | usage_field

    for choice in map(mapping, sequence(whole["choices"])):
        index, message = choice["index"], mapping(choice["message"])
        said = ("role", "content", "tool_calls", "refusal")
        more = {name: value for name, value in message.items() if name not in said}
        yield chunk(index, {"role": message["role"], "content": "", "refusal": None} | more)
        for name in ("content", "refusal"):
            if message.get(name):
                yield chunk(index, {name: message[name]})
        for number, call in enumerate(map(mapping, sequence(message.get("tool_calls")))):
            kind = call["type"]
            field = "input" if kind == "custom" else "arguments"
            begun = call | {"index": number, kind: call[kind] | {field: ""}}
            yield chunk(index, {"tool_calls": [begun]})
            written = {"index": number, kind: {field: call[kind][field]}}
            yield chunk(index, {"tool_calls": [written]})
        yield chunk(index, {}, choice["finish_reason"])
    if wants_usage and whole["usage"] is not None:
        yield "", head | {"choices": [], "usage": whole["usage"]}


FORM = AnswerForm(body, stream, done=b"data: [DONE]\n\n")
