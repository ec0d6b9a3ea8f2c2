"""Answers of Gemini's generateContent, plain and streamed."""

from __future__ import annotations

from collections.abc import Iterable

from playhead_genai.messages import (
    Blob,
    Generic,
    OutputMessage,
    Part,
    Reasoning,
    ServerToolCall,
    ServerToolCallResponse,
    Text,
    ToolCall,
    Uri,
)
from playhead_genai.providers.catalogue import model_in, path_of
from playhead_genai.providers.reading import Object, mapping, parsed_arguments, sequence
from playhead_genai.rebuilding.calls import ModelAnswer
from playhead_genai.rebuilding.rendering import AnswerForm, Event, Rendering
from playhead_semconv import attributes as a

_REASONS = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_call": "STOP",
    "content_filter": "SAFETY",
    "error": "OTHER",
}
_MODALITIES = {
    "promptTokensDetails": {
        "TEXT": a.GEN_AI_USAGE_TEXT_INPUT_TOKENS,
        "IMAGE": a.GEN_AI_USAGE_IMAGE_INPUT_TOKENS,
        "AUDIO": a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS,
    },
    "candidatesTokensDetails": {
        "TEXT": a.GEN_AI_USAGE_TEXT_OUTPUT_TOKENS,
        "IMAGE": a.GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS,
        "AUDIO": a.GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS,
    },
}


def body(made: Rendering) -> Object:
    """Return a response with a candidate for each message."""
    answer = made.answer
    candidates = [_candidate(made, *one) for one in enumerate(answer.messages)]
    if not candidates and answer.finish_reasons:
        candidates = [_candidate(made, 0, OutputMessage(role="assistant"))]
    found: Object = {"candidates": candidates, "modelVersion": answer.model or model_in(made.url)}
    if usage := _usage(answer):
        found["usageMetadata"] = usage
    return found | ({"responseId": answer.id} if answer.id else {})


def _candidate(made: Rendering, number: int, message: OutputMessage) -> Object:
    parts: list[Object] = []
    for part in message.parts:
        found = _part(part)
        if found is None:
            made.leave_out(part.type)
        else:
            parts.append(found)
    reason = made.finish_reason(number, _REASONS, called=False)
    return {
        "content": {"role": "model", "parts": parts},
        "finishReason": reason if reason in _REASONS.values() else reason.upper(),
        "index": number,
    } | message.extras


def _part(part: Part) -> Object | None:
    if isinstance(part, Text):
        return {"text": part.content} | part.extras
    if isinstance(part, Reasoning):
        return {"text": part.content, "thought": True} | part.extras
    if isinstance(part, ToolCall):
        given = part.arguments
        given = parsed_arguments(given) if isinstance(given, str) else given
        call: Object = {"name": part.name, "args": {} if given is None else given}
        return {"functionCall": call | ({"id": part.id} if part.id else {})} | part.extras
    if isinstance(part, Blob):
        return {"inlineData": {"mimeType": part.mime_type, "data": part.content}}
    if isinstance(part, Uri):
        return {"fileData": {"mimeType": part.mime_type, "fileUri": part.uri}} | part.extras
    if isinstance(part, ServerToolCall):
        return {"executableCode": _coded(part.server_tool_call, part.id)} | part.extras
    if isinstance(part, ServerToolCallResponse):
        result = _coded(part.server_tool_call_response, part.id)
        return {"codeExecutionResult": result} | part.extras
    if isinstance(part, Generic) and part.type.startswith("gemini_"):
        return dict(part.extras)
    return None


def _coded(value: Object, id: str | None) -> Object:
    found = {name: item for name, item in value.items() if name != "type"}
    return found | ({"id": id} if id else {})


def _usage(answer: ModelAnswer) -> Object:
    asked, said = (
        answer.count(name) for name in (a.GEN_AI_USAGE_INPUT_TOKENS, a.GEN_AI_USAGE_OUTPUT_TOKENS)
    )
    thought = answer.count(a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS)
    found: Object = {
        "promptTokenCount": asked,
        "candidatesTokenCount": None if said is None else max(0, said - (thought or 0)),
        "thoughtsTokenCount": thought,
        "cachedContentTokenCount": answer.count(a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS),
        "totalTokenCount": None if asked is None and said is None else (asked or 0) + (said or 0),
    }
    for field, names in _MODALITIES.items():
        counts = [(modality, answer.count(name)) for modality, name in names.items()]
        found[field] = [{"modality": one, "tokenCount": count} for one, count in counts if count] or None
    return {name: value for name, value in found.items() if value is not None}


def stream(made: Rendering, whole: Object) -> Iterable[Event]:
    """Cut a response into responses with a part each; the last one of a candidate ends it."""
    head = {name: value for name, value in whole.items() if name not in ("candidates", "usageMetadata")}
    events: list[Object] = []
    for candidate in map(mapping, sequence(whole["candidates"])):
        content = mapping(candidate["content"])
        parts = sequence(content.get("parts"))
        begun = {"index": candidate["index"]}
        for part in parts[:-1]:
            events.append(head | {"candidates": [begun | {"content": content | {"parts": [part]}}]})
        events.append(head | {"candidates": [candidate | {"content": content | {"parts": parts[-1:]}}]})
    if events and "usageMetadata" in whole:
        events[-1] = events[-1] | {"usageMetadata": whole["usageMetadata"]}
    return [("", event) for event in events or [whole]]


def _is_streamed(request: Object, url: str) -> bool:
    return path_of(url).endswith(":streamGenerateContent")


FORM = AnswerForm(body, stream, _is_streamed)
