"""Models on Bedrock that take a text and give a text: Titan, Claude 2, Llama, Mistral, Command, AI21.

``POST …/model/NAME/invoke`` and ``/invoke-with-response-stream``. Each family has names of its own for
the same few fields.
"""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import FinishReason, InputMessage, OutputMessage, Part, Text, ToolCall
from playhead_genai.providers.dialect import Plain, ResponseContent
from playhead_genai.providers.merging import Pieces, settled, updated
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
from playhead_semconv.values import GenAiOperationName, GenAiProviderName

_REASONS = {
    "finish": FinishReason.STOP,
    "finished": FinishReason.STOP,
    "complete": FinishReason.STOP,
    "endoftext": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "stop_criteria_met": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "content_filtered": FinishReason.CONTENT_FILTER,
    "error_toxic": FinishReason.CONTENT_FILTER,
    "rag_query_when_rag_disabled": FinishReason.ERROR,
}
_LIMITS = ("max_tokens", "max_tokens_to_sample", "max_gen_len", "maxTokenCount", "maxTokens")
_CHOICES = ("results", "outputs", "generations", "choices", "completions")
_SAID = ("outputText", "text", "generation", "completion")
_WHY = ("completionReason", "stop_reason", "finish_reason", "finishReason")
_INPUT = ("inputTextTokenCount", "prompt_token_count", "inputTokenCount")
_OUTPUT = ("totalOutputTextTokenCount", "generation_token_count", "outputTokenCount", "tokenCount")
METRICS = "amazon-bedrock-invocationMetrics"


class _BedrockText(Plain):
    provider = GenAiProviderName.AWS_BEDROCK
    operation = GenAiOperationName.TEXT_COMPLETION

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        config = request | mapping(request.get("textGenerationConfig"))
        limit = next((config[name] for name in _LIMITS if name in config), None)
        stop = next(
            (config[name] for name in ("stop_sequences", "stopSequences", "stop") if name in config),
            None,
        )
        return without_none(
            {
                a.GEN_AI_REQUEST_MAX_TOKENS: integer(limit),
                a.GEN_AI_REQUEST_TEMPERATURE: number(config.get("temperature")),
                a.GEN_AI_REQUEST_TOP_P: number(_first(config, "top_p", "topP", "p")),
                a.GEN_AI_REQUEST_TOP_K: integer(_first(config, "top_k", "topK", "k")),
                a.GEN_AI_REQUEST_STOP_SEQUENCES: strings(stop),
            }
        )

    def message(self, item: Any) -> InputMessage:
        """Return the message for the text."""
        parts: list[Part] = [Text(content=item)] if isinstance(item, str) and item else []
        return InputMessage(role="user", parts=parts)

    def fold(self) -> TextFold:
        """Return a new fold for a stream."""
        return TextFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message for each text."""
        messages: list[OutputMessage] = []
        reasons: list[str] = []
        written = 0
        for choice in choices_in(body):
            said = _first(choice, *_SAID)
            if isinstance(said, dict):  # AI21: {"data": {"text": …}}
                said = mapping(said).get("text")
            parts: list[Part] = [Text(content=said)] if isinstance(said, str) and said else []
            for item in sequence(choice.get("tool_calls")):
                call = mapping(item)
                arguments = call.get("parameters")
                parts.append(ToolCall(name=text(call.get("name")) or "", arguments=arguments))
            if parts:
                messages.append(OutputMessage(role="assistant", parts=parts))
            why = _first(choice, *_WHY)
            why = text(mapping(why).get("reason")) or text(why)
            if why is None and cut_short and parts:
                why = FinishReason.ERROR
            if why:
                reasons.append(_REASONS.get(why.lower(), why.lower()))
            written += integer(choice.get("tokenCount")) or 0
        counts = body | mapping(body.get(METRICS))
        found = without_none(
            {
                a.GEN_AI_RESPONSE_ID: text(_first(body, "generation_id", "response_id", "id")),
                a.GEN_AI_USAGE_INPUT_TOKENS: integer(_first(counts, *_INPUT)),
                a.GEN_AI_USAGE_OUTPUT_TOKENS: integer(written) or integer(_first(counts, *_OUTPUT)),
            }
        )
        return ResponseContent(messages, reasons, found)


class BedrockPrompt(_BedrockText):
    """Text models on Bedrock with a ``prompt``: Claude 2, Llama, Mistral, Command, AI21."""

    wire = "bedrock.prompt"
    messages_field = "prompt"


class BedrockTitan(_BedrockText):
    """Titan's text models on Bedrock, which take an ``inputText``."""

    wire = "bedrock.titan"
    messages_field = "inputText"


class BedrockCommandR(_BedrockText):
    """Cohere's Command R on Bedrock, which takes a ``message`` and a ``chat_history``."""

    wire = "bedrock.command_r"
    operation = GenAiOperationName.CHAT
    messages_field = "message"
    instructions_field = "preamble"

    def instructions(self, value: Any) -> list[Part]:
        """Return the part for ``preamble``."""
        return [Text(content=value)] if isinstance(value, str) and value else []


def choices_in(body: Object) -> list[Object]:
    """Return the objects that hold the texts: items of an array, else the body itself."""
    for name in _CHOICES:
        if isinstance(body.get(name), list):
            return [mapping(item) for item in sequence(body[name])]
    return [body] if any(name in body for name in (*_SAID, "tool_calls")) else []


def _first(fields: Object, *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


class TextFold:
    """Joins chunks: texts are appended, everything else is replaced by what comes later."""

    def __init__(self) -> None:
        self._body: Object = {}
        self._choices: dict[int, Object] = {}
        self._plain = True

    def event(self, name: str, value: Object) -> None:
        """Add the next chunk."""
        if name == "error" or "error" in value:
            self._body["error"] = value.get("error")
            return
        self._plain = not any(isinstance(value.get(name), list) for name in _CHOICES)
        fields = rest(value, *_CHOICES, *_SAID, *_WHY)
        self._body = updated(self._body, fields, (*_INPUT, *_OUTPUT))
        for index, choice in enumerate(choices_in(value) or [value]):
            have = self._choices.setdefault(index, {})
            for field, item in choice.items():
                if field in _SAID and isinstance(item, str):
                    pieces = have.setdefault(field, Pieces())
                    if isinstance(pieces, Pieces):
                        pieces.append(item)
                elif item is not None and (field in _WHY or field in _SAID or not self._plain):
                    have[field] = item

    def done(self) -> None:
        """No-op: ``[DONE]`` is not part of this format."""

    def ended(self, whole: bool) -> bool:
        """Whether every text has a reason why it ended."""
        found = self._choices.values()
        return bool(found) and all(any(name in choice for name in _WHY) for choice in found)

    def body(self) -> Object:
        """Return the answer so far."""
        found = [self._choices[index] for index in sorted(self._choices)]
        return self._body | ({"results": settled(found)} if found else {})
