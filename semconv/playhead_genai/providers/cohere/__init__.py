"""Cohere's chat, version 2: ``POST …/v2/chat``.

Embeddings (``POST …/v2/embed``) are here, too: texts to embed are the input messages, and the vectors,
which are no messages, stay in the exchange.
"""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import (
    FinishReason,
    InputMessage,
    OutputMessage,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolCallResponse,
    ToolDefinition,
)
from playhead_genai.providers.dialect import Plain, ResponseContent, definition
from playhead_genai.providers.merging import Blocks, merge, settled, updated
from playhead_genai.providers.openai.common import content_parts, output_type
from playhead_genai.providers.reading import (
    Object,
    integer,
    mapping,
    number,
    parsed_arguments,
    rest,
    sequence,
    strings,
    text,
    without_none,
)
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiProviderName

_REASONS = {
    "COMPLETE": FinishReason.STOP,
    "STOP_SEQUENCE": FinishReason.STOP,
    "MAX_TOKENS": FinishReason.LENGTH,
    "TOOL_CALL": FinishReason.TOOL_CALL,
    "ERROR": FinishReason.ERROR,
    "TIMEOUT": FinishReason.ERROR,
}
_FIELDS = ("role", "content", "tool_calls", "tool_plan", "tool_call_id")


class CohereChat(Plain):
    """Cohere's chat, version 2: ``POST …/v2/chat``."""

    wire = "cohere.chat"
    provider = GenAiProviderName.COHERE
    operation = GenAiOperationName.CHAT
    messages_field = "messages"
    tools_fields = ("tools",)

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        return without_none(
            {
                a.GEN_AI_REQUEST_MODEL: text(request.get("model")),
                a.GEN_AI_REQUEST_MAX_TOKENS: integer(request.get("max_tokens")),
                a.GEN_AI_REQUEST_TEMPERATURE: number(request.get("temperature")),
                a.GEN_AI_REQUEST_TOP_P: number(request.get("p")),
                a.GEN_AI_REQUEST_TOP_K: integer(request.get("k")),
                a.GEN_AI_REQUEST_SEED: integer(request.get("seed")),
                a.GEN_AI_REQUEST_FREQUENCY_PENALTY: number(request.get("frequency_penalty")),
                a.GEN_AI_REQUEST_PRESENCE_PENALTY: number(request.get("presence_penalty")),
                a.GEN_AI_REQUEST_STOP_SEQUENCES: strings(request.get("stop_sequences")),
                a.GEN_AI_REQUEST_STREAM: True if request.get("stream") is True else None,
                a.GEN_AI_OUTPUT_TYPE: output_type(request.get("response_format")),
            }
        )

    def message(self, item: Any) -> InputMessage:
        """Return the message for one item of ``messages``."""
        value = mapping(item)
        role = text(value.get("role")) or "user"
        if role == "tool":
            parts: list[Part] = [
                ToolCallResponse(id=text(value.get("tool_call_id")), response=value.get("content"))
            ]
        else:
            parts = _parts(value)
        return InputMessage(role=role, parts=parts, extras=rest(value, *_FIELDS))

    def tools(self, value: Any) -> list[ToolDefinition]:
        """Return the definitions for ``tools``."""
        fields = [mapping(mapping(item).get("function")) for item in sequence(value)]
        return [definition("function", text(one.get("name")) or "", one, "parameters") for one in fields]

    def fold(self) -> CohereFold:
        """Return a new fold for a stream."""
        return CohereFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message.

        Tokens are those that the model has read and written, not those that are billed.
        """
        message = mapping(body.get("message"))
        parts = _parts(message)
        reason = text(body.get("finish_reason"))
        if reason is None and cut_short and parts:
            reason = FinishReason.ERROR
        usage = mapping(body.get("usage"))
        counts = mapping(usage.get("tokens")) or mapping(usage.get("billed_units"))
        found = without_none(
            {
                a.GEN_AI_RESPONSE_ID: text(body.get("id")),
                a.GEN_AI_USAGE_INPUT_TOKENS: integer(counts.get("input_tokens")),
                a.GEN_AI_USAGE_OUTPUT_TOKENS: integer(counts.get("output_tokens")),
                a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: integer(usage.get("cached_tokens")),
            }
        )
        role = text(message.get("role")) or "assistant"
        messages = [OutputMessage(role=role, parts=parts, extras=rest(message, *_FIELDS))]
        reasons = [_REASONS.get(reason, reason.lower())] if reason else []
        return ResponseContent(messages if parts else [], reasons, found)


def _parts(value: Object) -> list[Part]:
    parts: list[Part] = []
    if plan := text(value.get("tool_plan")):
        parts.append(Reasoning(content=plan, extras={"tool_plan": True}))
    parts += content_parts(value.get("content"))
    for item in sequence(value.get("tool_calls")):
        call = mapping(mapping(item).get("function"))
        arguments = call.get("arguments")
        parts.append(
            ToolCall(
                id=text(mapping(item).get("id")),
                name=text(call.get("name")) or "",
                arguments=parsed_arguments(arguments) if isinstance(arguments, str) else arguments,
            )
        )
    return parts


class CohereFold:
    """Joins events into an answer. It has ended with ``message-end``."""

    def __init__(self) -> None:
        self._body: Object = {}
        self._message: Object = {}
        self._content = Blocks()
        self._calls = Blocks()
        self._citations: list[Any] = []
        self._ended = False

    def event(self, name: str, value: Object) -> None:
        """Add the next event."""
        kind = text(value.get("type")) or name
        delta = mapping(value.get("delta"))
        message = mapping(delta.get("message"))
        index = integer(value.get("index"))
        if kind == "message-start":
            self._body |= rest(value, "type", "delta")
            self._message |= rest(message, "content", "tool_calls", "tool_plan", "citations")
        elif kind in ("content-start", "content-delta"):
            _add(self._content, kind, index, mapping(message.get("content")))
        elif kind == "content-end":
            self._content.end(index)
        elif kind == "tool-plan-delta":
            merge(self._message, rest(message))
        elif kind in ("tool-call-start", "tool-call-delta"):
            _add(self._calls, kind, index, mapping(message.get("tool_calls")))
        elif kind == "tool-call-end":
            self._calls.end(index)
        elif kind == "citation-start":
            self._citations.append(message.get("citations"))
        elif kind == "message-end":
            self._body = updated(self._body, rest(delta))
            self._ended = True

    def done(self) -> None:
        """No-op: ``[DONE]`` is not part of this format."""

    def ended(self, whole: bool) -> bool:
        """Whether ``message-end`` has come."""
        return self._ended

    def body(self) -> Object:
        """Return the answer so far."""
        message: Object = settled(self._message)
        if self._content:
            message["content"] = [settled(self._content[at]) for at in sorted(self._content)]
        if self._calls:
            message["tool_calls"] = [settled(self._calls[at]) for at in sorted(self._calls)]
        if self._citations:
            message["citations"] = self._citations
        return self._body | ({"message": message} if message else {})


def _add(blocks: Blocks, kind: str, index: int | None, delta: Object) -> None:
    if kind.endswith("-start"):
        blocks.begin(index, {}, text(delta.get("id")))
    merge(blocks.setdefault(blocks.at(index), {}), delta)


class CohereEmbed(Plain):
    """Cohere's embeddings, version 2: ``POST …/v2/embed``."""

    wire = "cohere.embed"
    provider = GenAiProviderName.COHERE
    operation = GenAiOperationName.EMBEDDINGS
    messages_field = "texts"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        return without_none(
            {
                a.GEN_AI_REQUEST_MODEL: text(request.get("model")),
                a.GEN_AI_REQUEST_ENCODING_FORMATS: strings(request.get("embedding_types")),
                a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: integer(request.get("output_dimension")),
            }
        )

    def message(self, item: Any) -> InputMessage:
        """Return the message for one text."""
        parts: list[Part] = [Text(content=item)] if isinstance(item, str) and item else []
        return InputMessage(role="user", parts=parts)

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: id, usage and dimension."""
        units = mapping(mapping(body.get("meta")).get("billed_units"))
        vectors = mapping(body.get("embeddings")).get("float")
        first = next(iter(sequence(vectors)), None)
        return ResponseContent(
            attributes=without_none(
                {
                    a.GEN_AI_RESPONSE_ID: text(body.get("id")),
                    a.GEN_AI_USAGE_INPUT_TOKENS: integer(units.get("input_tokens")),
                    a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: len(sequence(first)) or None,
                }
            )
        )
