"""Ollama's own API: ``POST …/api/chat``, ``…/api/generate`` and ``…/api/embed``.

Its streams are lines of JSON.
"""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import (
    Blob,
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
from playhead_genai.providers.dialect import Plain, ResponseContent, definition, tokens
from playhead_genai.providers.merging import merge, settled, updated
from playhead_genai.providers.reading import (
    Object,
    integer,
    mapping,
    number,
    rest,
    sequence,
    strings,
    text,
    without_none,
)
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiOutputType

_USAGE = (
    (a.GEN_AI_USAGE_INPUT_TOKENS, "", "prompt_eval_count"),
    (a.GEN_AI_USAGE_OUTPUT_TOKENS, "", "eval_count"),
)
_FIELDS = ("role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id")


class OllamaDialect(Plain):
    """What Ollama's dialects have in common: parameters, streams, usage."""

    provider = "ollama"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields. A request that says nothing asks for a stream."""
        options = mapping(request.get("options"))
        level = request.get("think")
        form = request.get("format")
        return without_none(
            {
                a.GEN_AI_REQUEST_MODEL: text(request.get("model")),
                a.GEN_AI_REQUEST_MAX_TOKENS: integer(options.get("num_predict")),
                a.GEN_AI_REQUEST_TEMPERATURE: number(options.get("temperature")),
                a.GEN_AI_REQUEST_TOP_P: number(options.get("top_p")),
                a.GEN_AI_REQUEST_TOP_K: integer(options.get("top_k")),
                a.GEN_AI_REQUEST_SEED: integer(options.get("seed")),
                a.GEN_AI_REQUEST_FREQUENCY_PENALTY: number(options.get("frequency_penalty")),
                a.GEN_AI_REQUEST_PRESENCE_PENALTY: number(options.get("presence_penalty")),
                a.GEN_AI_REQUEST_STOP_SEQUENCES: strings(options.get("stop")),
                a.GEN_AI_REQUEST_REASONING_LEVEL: text(level),
                a.GEN_AI_OUTPUT_TYPE: GenAiOutputType.JSON
                if form == "json" or isinstance(form, dict)
                else None,
            }
        )

    def fold(self) -> OllamaFold:
        """Return a new fold for a stream."""
        return OllamaFold()


class OllamaChat(OllamaDialect):
    """Ollama's own chat: ``POST …/api/chat``. Its streams are lines of JSON."""

    wire = "ollama.chat"
    operation = GenAiOperationName.CHAT
    messages_field = "messages"
    tools_fields = ("tools",)

    def message(self, item: Any) -> InputMessage:
        """Return the message for one item of ``messages``."""
        value = mapping(item)
        role = text(value.get("role")) or "user"
        extras = rest(value, *_FIELDS)
        if role != "tool":
            return InputMessage(role=role, parts=parts_of(value), extras=extras)
        name = text(value.get("tool_name"))
        response = ToolCallResponse(
            id=text(value.get("tool_call_id")),
            response=value.get("content"),
            extras=without_none({"name": name}),
        )
        return InputMessage(role=role, parts=[response], extras=extras)

    def tools(self, value: Any) -> list[ToolDefinition]:
        """Return the definitions for ``tools``."""
        found: list[ToolDefinition] = []
        for item in sequence(value):
            kind = text(mapping(item).get("type")) or "function"
            fields = mapping(mapping(item).get(kind))
            found.append(definition(kind, text(fields.get("name")) or kind, fields, "parameters"))
        return found

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message."""
        message = mapping(body.get("message"))
        parts = parts_of(message)
        role = text(message.get("role")) or "assistant"
        messages = [OutputMessage(role=role, parts=parts, extras=rest(message, *_FIELDS))]
        return ended_answer(body, messages if parts else [], cut_short)


def parts_of(value: Object) -> list[Part]:
    """Return the parts of a message."""
    parts: list[Part] = []
    if thinking := text(value.get("thinking")):
        parts.append(Reasoning(content=thinking))
    if content := text(value.get("content")):
        parts.append(Text(content=content))
    images = (text(item) for item in sequence(value.get("images")))
    parts += [Blob(modality="image", content=image) for image in images if image]
    for item in sequence(value.get("tool_calls")):
        call = mapping(mapping(item).get("function"))
        parts.append(
            ToolCall(
                id=text(mapping(item).get("id")),
                name=text(call.get("name")) or "",
                arguments=call.get("arguments"),
            )
        )
    return parts


def ended_answer(body: Object, messages: list[OutputMessage], cut_short: bool) -> ResponseContent:
    """Return the contents of an answer with these messages."""
    reason = text(body.get("done_reason")) or (FinishReason.ERROR if cut_short and messages else None)
    found = without_none({a.GEN_AI_RESPONSE_MODEL: text(body.get("model"))})
    return ResponseContent(messages, [reason] if reason else [], found | tokens(body, _USAGE))


class OllamaFold:
    """Joins lines: the message and the text grow, everything else is replaced by what comes later."""

    def __init__(self) -> None:
        self._body: Object = {}
        self._growing: Object = {}
        self._calls: list[Any] = []

    def event(self, name: str, value: Object) -> None:
        """Add the next line."""
        self._body = updated(self._body, rest(value, *_GROWING), (name for *_, name in _USAGE))
        growing = {field: value[field] for field in _GROWING if field in value}
        if calls := sequence(mapping(growing.get("message")).get("tool_calls")):
            growing["message"] = rest(growing["message"], "tool_calls")
            self._calls += calls  # each is whole, whatever index a server gives it
        merge(self._growing, growing)

    def done(self) -> None:
        """No-op: ``[DONE]`` is not part of this format."""

    def ended(self, whole: bool) -> bool:
        """Whether the line that says so has come."""
        return self._body.get("done") is True

    def body(self) -> Object:
        """Return the answer so far."""
        grown: Object = settled(self._growing)
        if self._calls:
            grown["message"] = mapping(grown.get("message")) | {"tool_calls": self._calls}
        return self._body | grown


_GROWING = ("message", "response", "thinking")


class OllamaGenerate(OllamaDialect):
    """Ollama's text completion: ``POST …/api/generate``."""

    wire = "ollama.generate"
    operation = GenAiOperationName.TEXT_COMPLETION
    messages_field = "prompt"
    instructions_field = "system"

    def message(self, item: Any) -> InputMessage:
        """Return the message for the prompt."""
        return InputMessage(role="user", parts=_text(item))

    def instructions(self, value: Any) -> list[Part]:
        """Return the part for ``system``."""
        return _text(value)

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message."""
        said = {"content": body.get("response"), "thinking": body.get("thinking")}
        parts = parts_of(said)
        messages = [OutputMessage(role="assistant", parts=parts)] if parts else []
        return ended_answer(body, messages, cut_short)


def _text(value: Any) -> list[Part]:
    return [Text(content=value)] if isinstance(value, str) and value else []


class OllamaEmbed(Plain):
    """Ollama's embeddings: ``POST …/api/embed``."""

    wire = "ollama.embed"
    provider = "ollama"
    operation = GenAiOperationName.EMBEDDINGS
    messages_field = "input"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        size = integer(request.get("dimensions"))
        model = text(request.get("model"))
        return without_none({a.GEN_AI_REQUEST_MODEL: model, a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: size})

    def message(self, item: Any) -> InputMessage:
        """Return the message for one text."""
        parts: list[Part] = [Text(content=item)] if isinstance(item, str) and item else []
        return InputMessage(role="user", parts=parts)

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: model, usage and dimension."""
        first = next(iter(sequence(body.get("embeddings"))), None)
        return ResponseContent(
            attributes=without_none(
                {
                    a.GEN_AI_RESPONSE_MODEL: text(body.get("model")),
                    a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: len(sequence(first)) or None,
                    a.GEN_AI_USAGE_INPUT_TOKENS: integer(body.get("prompt_eval_count")),
                }
            )
        )
