"""OpenAI chat completions: ``POST …/chat/completions``; many other providers use it, too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import (
    Blob,
    File,
    FinishReason,
    InputMessage,
    OutputMessage,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolCallResponse,
    ToolDefinition,
    audio_type,
)
from playhead_genai.providers.dialect import Fold, Plain, ResponseContent, definition, tokens
from playhead_genai.providers.merging import Pieces, merge, settled, updated
from playhead_genai.providers.openai.common import content_parts, output_type, refusal, sampling
from playhead_genai.providers.openai.tool_call_deltas import ToolCalls
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
from playhead_semconv.values import GenAiOperationName, GenAiOutputType, OpenaiApiType

_FINISH_REASONS = {
    "tool_calls": FinishReason.TOOL_CALL,
    "function_call": FinishReason.TOOL_CALL,
    "model_length": FinishReason.LENGTH,
}
_USAGE = (
    (a.GEN_AI_USAGE_INPUT_TOKENS, "", "prompt_tokens"),
    (a.GEN_AI_USAGE_OUTPUT_TOKENS, "", "completion_tokens"),
    (a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, "prompt_tokens_details", "cached_tokens"),
    (a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS, "prompt_tokens_details", "cache_write_tokens"),
    (a.GEN_AI_USAGE_TEXT_INPUT_TOKENS, "prompt_tokens_details", "text_tokens"),
    (a.GEN_AI_USAGE_IMAGE_INPUT_TOKENS, "prompt_tokens_details", "image_tokens"),
    (a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS, "prompt_tokens_details", "audio_tokens"),
    (a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, "completion_tokens_details", "reasoning_tokens"),
    (a.GEN_AI_USAGE_TEXT_OUTPUT_TOKENS, "completion_tokens_details", "text_tokens"),
    (a.GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS, "completion_tokens_details", "image_tokens"),
    (a.GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS, "completion_tokens_details", "audio_tokens"),
)


class OpenAIChat(Plain):
    """OpenAI chat completions: ``POST …/chat/completions``. Many other providers use it, too."""

    wire = "openai.chat"
    operation = GenAiOperationName.CHAT
    messages_field = "messages"
    tools_fields: tuple[str, ...] = ("tools", "functions")

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        choices = integer(request.get("n"))
        limit = request.get("max_completion_tokens")
        speech = "audio" in sequence(request.get("modalities"))
        form = GenAiOutputType.SPEECH if speech else output_type(request.get("response_format"))
        return sampling(request) | without_none(
            {
                a.GEN_AI_REQUEST_MAX_TOKENS: integer(
                    request.get("max_tokens") if limit is None else limit
                ),
                a.GEN_AI_REQUEST_FREQUENCY_PENALTY: number(request.get("frequency_penalty")),
                a.GEN_AI_REQUEST_PRESENCE_PENALTY: number(request.get("presence_penalty")),
                a.GEN_AI_REQUEST_STOP_SEQUENCES: strings(request.get("stop")),
                a.GEN_AI_REQUEST_SEED: integer(request.get("seed", request.get("random_seed"))),
                a.GEN_AI_REQUEST_TOP_K: integer(request.get("top_k")),
                a.GEN_AI_REQUEST_CHOICE_COUNT: None if choices == 1 else choices,
                a.GEN_AI_REQUEST_REASONING_LEVEL: text(request.get("reasoning_effort")),
                a.GEN_AI_OUTPUT_TYPE: form,
                a.OPENAI_API_TYPE: OpenaiApiType.CHAT_COMPLETIONS,
            }
        )

    def message(self, item: Any) -> InputMessage:
        """Return the message for one item of ``messages``."""
        if not isinstance(item, dict):
            return InputMessage(role="user", parts=content_parts(item))
        value = mapping(item)
        role = text(value.get("role")) or "user"
        if role in ("tool", "function"):
            response = ToolCallResponse(
                id=text(value.get("tool_call_id")), response=value.get("content")
            )
            parts: list[Part] = [response]
            extras = rest(value, "role", "name", "content", "tool_call_id")
        else:
            parts = _parts(value, None)
            extras = _extras(value)
        return InputMessage(role=role, parts=parts, name=text(value.get("name")), extras=extras)

    def tools(self, value: Any) -> list[ToolDefinition]:
        """Return the definitions for an array of tools."""
        return [_tool(item) for item in sequence(value)]

    def fold(self) -> Fold:
        """Return a new fold for a stream."""
        return ChatFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message per choice."""
        audio = audio_type(text(mapping(request.get("audio")).get("format")))
        messages: list[OutputMessage] = []
        reasons: list[str] = []
        for item in sequence(body.get("choices")):
            choice = mapping(item)
            value = mapping(choice.get("message"))
            messages.append(
                OutputMessage(
                    role=text(value.get("role")) or "assistant",
                    parts=_parts(value, audio),
                    name=text(value.get("name")),
                    extras=_extras(value),
                )
            )
            reason = text(choice.get("finish_reason")) or (FinishReason.ERROR if cut_short else None)
            if reason:
                reasons.append(_FINISH_REASONS.get(reason, reason))
        found = without_none(
            {
                a.GEN_AI_RESPONSE_ID: text(body.get("id")),
                a.GEN_AI_RESPONSE_MODEL: text(body.get("model")),
                a.OPENAI_RESPONSE_SERVICE_TIER: text(body.get("service_tier")),
                a.OPENAI_RESPONSE_SYSTEM_FINGERPRINT: text(body.get("system_fingerprint")),
            }
        )
        return ResponseContent(messages, reasons, found | tokens(mapping(body.get("usage")), _USAGE))


def _tool(item: Any) -> ToolDefinition:
    """Return the definition for one item of ``tools`` or ``functions``."""
    value = mapping(item)
    kind = text(value.get("type")) or "function"
    nested = value.get(kind)
    if isinstance(nested, dict):
        fields = mapping(nested) | rest(value, "type", kind)
    else:
        fields = value
    return definition(kind, text(fields.get("name")) or kind, fields, "parameters")


_REASONING = ("reasoning_content", "reasoning")
"""Fields with reasoning as text. Some servers send both."""

_PART_FIELDS = (
    "content",
    "refusal",
    "tool_calls",
    "function_call",
    "audio",
)


def _parts(value: Object, audio: str | None) -> list[Part]:
    """Return the parts of a message; ``audio``: MIME type of the audio that the model was asked for."""
    parts: list[Part] = []
    told = (text(value.get(name)) for name in _REASONING)
    parts += [Reasoning(content=one) for one in dict.fromkeys(told) if one]
    parts += content_parts(value.get("content"))
    if declined := text(value.get("refusal")):
        parts.append(refusal(declined))
    parts += _audio(mapping(value.get("audio")), audio)
    parts += [_tool_call(mapping(item)) for item in sequence(value.get("tool_calls"))]
    call = mapping(value.get("function_call"))
    if text(call.get("name")):  # some send an empty one with every answer
        parts.append(_tool_call({"function": call}))
    return parts


def _extras(value: Object) -> Object:
    """Return the fields of a message that its parts do not show."""
    shown = (name for name in _REASONING if isinstance(value.get(name), str))
    return rest(value, "role", "name", *_PART_FIELDS, *shown)


def _audio(audio: Object, mime_type: str | None) -> list[Part]:
    """Return audio from the model (with data), or a reference to it."""
    parts: list[Part] = []
    data, identity = text(audio.get("data")), text(audio.get("id"))
    if data:
        parts.append(Blob(mime_type=mime_type, modality="audio", content=data))
    elif identity:
        parts.append(File(modality="audio", file_id=identity))
    if transcript := text(audio.get("transcript")):
        parts.append(Text(content=transcript, extras={"audio": rest(audio, "data", "transcript")}))
    return parts


def _tool_call(call: Object) -> ToolCall:
    kind = text(call.get("type")) or "function"
    fields = mapping(call.get(kind))
    arguments = fields.get("input" if kind == "custom" else "arguments")
    return ToolCall(
        id=text(call.get("id")),
        name=text(fields.get("name")) or "",
        arguments=parsed_arguments(arguments) if isinstance(arguments, str) else arguments,
        extras=rest(call, "id", "type", "index", *([kind] if fields else []))
        | rest(fields, "name", "arguments", "input")
        | ({} if kind == "function" else {"kind": kind}),
    )


class ChoicesFold(ABC):
    """Joins chunks with choices into one body. It ends with ``[DONE]``, else when every choice has."""

    def __init__(self) -> None:
        self._done = False
        self._body: Object = {}
        self._choices: dict[int, Object] = {}

    @abstractmethod
    def extend(self, have: Object, choice: Object) -> None:
        """Add to a choice what the next chunk says of it. ``have``: empty at first."""

    def event(self, name: str, value: Object) -> None:
        """Add the next chunk."""
        self._body = updated(self._body, rest(value, "choices"))
        for item in sequence(value.get("choices")):
            choice = mapping(item)
            have = self._choices.setdefault(integer(choice.get("index")) or 0, {})
            self.extend(have, choice)
            if reason := text(choice.get("finish_reason")):
                have["finish_reason"] = reason

    def done(self) -> None:
        """``[DONE]`` was received."""
        self._done = True

    def ended(self, whole: bool) -> bool:
        """Whether ``[DONE]`` was received, or the body is complete and every begun choice has ended."""
        choices = self._choices.values()
        return self._done or (whole and bool(choices) and all("finish_reason" in c for c in choices))

    def body(self) -> Object:
        """Return the answer so far."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        return self._body | ({"choices": settled(choices)} if choices else {})


class ChatFold(ChoicesFold):
    """Joins chunks into a chat completion."""

    def extend(self, have: Object, choice: Object) -> None:
        """See `ChoicesFold.extend`."""
        message = have.setdefault("message", {})
        delta = mapping(choice.get("delta")) or mapping(choice.get("message"))
        merge(message, {name: value for name, value in delta.items() if name != "tool_calls"})
        if calls := sequence(delta.get("tool_calls")):
            message.setdefault("tool_calls", ToolCalls()).add(calls)


class OpenAICompletions(OpenAIChat):
    """OpenAI's text completions: ``POST …/completions``. vLLM, Together, Fireworks and others use it."""

    wire = "openai.completions"
    operation = GenAiOperationName.TEXT_COMPLETION
    messages_field = "prompt"
    tools_fields = ()

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields: those of a chat."""
        found = super().parameters(request)
        return {name: value for name, value in found.items() if name != a.OPENAI_API_TYPE}

    def message(self, item: Any) -> InputMessage:
        """Return the message for one prompt."""
        return InputMessage(
            role="user", parts=[Text(content=item)] if isinstance(item, str) and item else []
        )

    def fold(self) -> CompletionFold:
        """Return a new fold for a stream."""
        return CompletionFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message per choice."""
        found = super().answer(body, request, cut_short)
        texts = (text(mapping(choice).get("text")) for choice in sequence(body.get("choices")))
        found.messages = [
            OutputMessage(role="assistant", parts=[Text(content=one)] if one else []) for one in texts
        ]
        return found


class CompletionFold(ChoicesFold):
    """Joins chunks into a completion."""

    def extend(self, have: Object, choice: Object) -> None:
        """See `ChoicesFold.extend`."""
        have.setdefault("text", Pieces()).append(text(choice.get("text")) or "")
