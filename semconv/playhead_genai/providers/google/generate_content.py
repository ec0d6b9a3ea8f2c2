"""Gemini: ``POST …/models/NAME:generateContent`` and ``:streamGenerateContent``, on both its hosts."""

from __future__ import annotations

from typing import Any

import msgspec

from playhead_core.facts import Value
from playhead_genai.messages import FinishReason, InputMessage, OutputMessage, Part, ToolDefinition
from playhead_genai.providers.dialect import Plain, ResponseContent, definition
from playhead_genai.providers.google.parts import camel, content_parts, role_of, usage_of
from playhead_genai.providers.google.stream_fold import ContentFold
from playhead_genai.providers.reading import (
    Object,
    integer,
    mapping,
    number,
    parse,
    rest,
    sequence,
    strings,
    text,
    without_none,
)
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiOutputType, GenAiProviderName

_REASONS = {
    "STOP": FinishReason.STOP,
    "MAX_TOKENS": FinishReason.LENGTH,
    "SAFETY": FinishReason.CONTENT_FILTER,
    "RECITATION": FinishReason.CONTENT_FILTER,
    "BLOCKLIST": FinishReason.CONTENT_FILTER,
    "PROHIBITED_CONTENT": FinishReason.CONTENT_FILTER,
    "SPII": FinishReason.CONTENT_FILTER,
    "MODEL_ARMOR": FinishReason.CONTENT_FILTER,
    "IMAGE_SAFETY": FinishReason.CONTENT_FILTER,
    "IMAGE_PROHIBITED_CONTENT": FinishReason.CONTENT_FILTER,
    "IMAGE_RECITATION": FinishReason.CONTENT_FILTER,
}
_NUMBERED = (
    "FINISH_REASON_UNSPECIFIED",
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "MODEL_ARMOR",
)
"""Finish reasons by number: a client may ask Vertex for numbers instead of words."""


class GeminiContent:
    """What Gemini's dialects have in common: their contents."""

    messages_field = "contents"

    def message(self, item: Any) -> InputMessage:
        """Return the message for one item of ``contents``."""
        value = mapping(item)
        return InputMessage(
            role=role_of(value, "user"),
            parts=content_parts(item),
            extras=rest(value, "role", "parts") if "parts" in value else {},
        )


class GeminiGenerateContent(GeminiContent, Plain):
    """Gemini: ``POST …/models/NAME:generateContent`` and ``:streamGenerateContent``."""

    wire = "gemini.generate_content"
    provider = GenAiProviderName.GCP_GEN_AI
    operation = GenAiOperationName.GENERATE_CONTENT
    instructions_field = "systemInstruction"
    tools_fields = ("tools",)

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        fields = camel(request)
        config = camel(fields.get("generationConfig"))
        thinking = camel(config.get("thinkingConfig"))
        choices = integer(config.get("candidateCount"))
        top_k = integer(config.get("topK"))
        return without_none(
            {
                a.GEN_AI_REQUEST_MAX_TOKENS: integer(config.get("maxOutputTokens")),
                a.GEN_AI_REQUEST_TEMPERATURE: number(config.get("temperature")),
                a.GEN_AI_REQUEST_TOP_P: number(config.get("topP")),
                a.GEN_AI_REQUEST_TOP_K: top_k,
                a.GEN_AI_REQUEST_FREQUENCY_PENALTY: number(config.get("frequencyPenalty")),
                a.GEN_AI_REQUEST_PRESENCE_PENALTY: number(config.get("presencePenalty")),
                a.GEN_AI_REQUEST_STOP_SEQUENCES: strings(config.get("stopSequences")),
                a.GEN_AI_REQUEST_SEED: integer(config.get("seed")),
                a.GEN_AI_REQUEST_CHOICE_COUNT: None if choices == 1 else choices,
                a.GEN_AI_REQUEST_REASONING_LEVEL: _lower(thinking.get("thinkingLevel")),
                a.GEN_AI_OUTPUT_TYPE: _output_type(config),
            }
        )

    def instructions(self, value: Any) -> list[Part]:
        """Return the parts for ``systemInstruction``."""
        return content_parts(value)

    def tools(self, value: Any) -> list[ToolDefinition]:
        """Return the definitions for ``tools``: functions, and the provider's own tools."""
        found: list[ToolDefinition] = []
        for item in sequence(value) if isinstance(value, list) else [value]:
            for kind, tool in camel(item).items():
                if kind == "functionDeclarations":
                    found += [_function(one) for one in sequence(tool)]
                else:
                    found.append(
                        ToolDefinition(type=kind, name=kind, extras=rest(mapping(tool), "type"))
                    )
        return found

    def fold(self) -> ContentFold:
        """Return a new fold for a stream."""
        return ContentFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message per candidate."""
        messages: list[OutputMessage] = []
        reasons: list[str] = []
        for item in sequence(body.get("candidates")):
            candidate = camel(item)
            content = mapping(candidate.get("content"))
            parts = content_parts(content)
            extras = rest(candidate, "content", "finishReason", "index", "safetyRatings")
            if parts:
                role = role_of(content, "assistant")
                messages.append(OutputMessage(role=role, parts=parts, extras=extras))
            reason = _reason(candidate.get("finishReason")) or (
                FinishReason.ERROR if cut_short else None
            )
            if reason:
                reasons.append(reason)
        feedback = camel(body.get("promptFeedback"))
        if not reasons and _reason(feedback.get("blockReason")):
            reasons.append(FinishReason.CONTENT_FILTER)
        found = without_none(
            {
                a.GEN_AI_RESPONSE_ID: text(body.get("responseId")),
                a.GEN_AI_RESPONSE_MODEL: text(body.get("modelVersion")),
            }
        )
        return ResponseContent(messages, reasons, found | usage_of(body.get("usageMetadata")))


def _function(item: Any) -> ToolDefinition:
    value = camel(item)
    schema = "parametersJsonSchema" if "parametersJsonSchema" in value else "parameters"
    return definition("function", text(value.get("name")) or "", value, schema)


def _reason(value: Any) -> str | None:
    at = integer(value)
    if at is not None and 0 < at < len(_NUMBERED):
        value = _NUMBERED[at]
    word = text(value)
    return _REASONS.get(word, word.lower()) if word else None


def _lower(value: Any) -> str | None:
    word = text(value)
    return word.lower() if word else None


def _output_type(config: Object) -> str | None:
    mime_type = text(config.get("responseMimeType"))
    wanted = [str(one).lower() for one in sequence(config.get("responseModalities"))]
    if "audio" in wanted:
        return GenAiOutputType.SPEECH
    if "image" in wanted:
        return GenAiOutputType.IMAGE
    if mime_type == "application/json":
        return GenAiOutputType.JSON
    return GenAiOutputType.TEXT if mime_type == "text/plain" else None


class GeminiCountTokens(GeminiGenerateContent):
    """Gemini's token count: ``POST …/models/NAME:countTokens``. It has no messages and no usage."""

    wire = "gemini.count_tokens"
    operation = "count_tokens"

    def unwrapped(self, body: bytes) -> bytes:
        """Return the request that is asked about, where it is inside of another."""
        try:
            asked = mapping(parse(body))
        except (ValueError, RecursionError):
            return body
        inner = mapping(asked.get("generateContentRequest"))
        return msgspec.json.encode(inner) if inner else body

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return nothing: a count is no usage."""
        return ResponseContent()
