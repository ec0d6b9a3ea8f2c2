"""OpenAI's Responses API: ``POST …/responses``, ``GET …/responses/resp_…``, ``…/responses/compact``."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from playhead_core.facts import Value
from playhead_genai.messages import (
    Compaction,
    FinishReason,
    InputMessage,
    OutputMessage,
    Part,
    ToolCall,
    ToolDefinition,
)
from playhead_genai.providers.dialect import Plain, ResponseContent, definition, tokens
from playhead_genai.providers.openai.common import output_type, sampling
from playhead_genai.providers.openai.response_items import item_message, item_parts
from playhead_genai.providers.openai.responses_fold import ResponseFold
from playhead_genai.providers.reading import Object, integer, mapping, sequence, text, without_none
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, OpenaiApiType

_INCOMPLETE = {
    "max_output_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
}
USAGE = (
    (a.GEN_AI_USAGE_INPUT_TOKENS, "", "input_tokens"),
    (a.GEN_AI_USAGE_OUTPUT_TOKENS, "", "output_tokens"),
    (a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, "input_tokens_details", "cached_tokens"),
    (a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS, "input_tokens_details", "cache_write_tokens"),
    (a.GEN_AI_USAGE_TEXT_INPUT_TOKENS, "input_tokens_details", "text_tokens"),
    (a.GEN_AI_USAGE_IMAGE_INPUT_TOKENS, "input_tokens_details", "image_tokens"),
    (a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS, "input_tokens_details", "audio_tokens"),
    (a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, "output_tokens_details", "reasoning_tokens"),
    (a.GEN_AI_USAGE_TEXT_OUTPUT_TOKENS, "output_tokens_details", "text_tokens"),
    (a.GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS, "output_tokens_details", "image_tokens"),
    (a.GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS, "output_tokens_details", "audio_tokens"),
)


class OpenAIResponses(Plain):
    """OpenAI's Responses API: ``POST …/responses``."""

    wire = "openai.responses"
    operation = GenAiOperationName.CHAT
    messages_field = "input"
    instructions_field = "instructions"
    tools_fields = ("tools",)

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        prompt = mapping(request.get("prompt"))
        return sampling(request) | without_none(
            {
                a.GEN_AI_REQUEST_MAX_TOKENS: integer(request.get("max_output_tokens")),
                a.GEN_AI_REQUEST_REASONING_LEVEL: text(mapping(request.get("reasoning")).get("effort")),
                a.GEN_AI_REQUEST_PREVIOUS_RESPONSE_ID: text(request.get("previous_response_id")),
                a.GEN_AI_CONVERSATION_ID: _conversation(request),
                a.GEN_AI_PROMPT_NAME: text(prompt.get("id")),
                a.GEN_AI_PROMPT_VERSION: text(prompt.get("version")),
                a.GEN_AI_OUTPUT_TYPE: output_type(mapping(request.get("text")).get("format")),
                a.OPENAI_API_TYPE: OpenaiApiType.RESPONSES,
            }
        )

    def message(self, item: Any) -> InputMessage:
        """Return the message for one item of ``input``."""
        return item_message(item)

    def instructions(self, value: Any) -> list[Part]:
        """Return the parts for ``instructions``: text, or items as in ``input``."""
        items = cast(list[Any], value) if isinstance(value, list) else [value]
        return [part for item in items for part in item_message(item).parts]

    def tools(self, value: Any) -> list[ToolDefinition]:
        """Return the definitions for an array of tools."""
        return [_tool(item) for item in sequence(value)]

    def fold(self) -> ResponseFold:
        """Return a new fold for a stream."""
        return ResponseFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message with the parts of all output items."""
        items = [mapping(item) for item in sequence(body.get("output"))]
        parts = [part for item in items for part in item_parts(item)[1]]
        begun = bool(parts or body.get("id"))
        reason = FinishReason.ERROR if cut_short and begun else _finish_reason(body, parts)
        found = without_none(
            {
                a.GEN_AI_RESPONSE_ID: text(body.get("id")),
                a.GEN_AI_RESPONSE_MODEL: text(body.get("model")),
                a.GEN_AI_CONVERSATION_ID: _conversation(body),
                a.GEN_AI_CONVERSATION_COMPACTED: any(isinstance(p, Compaction) for p in parts) or None,
                a.OPENAI_RESPONSE_SERVICE_TIER: text(body.get("service_tier")),
            }
        )
        return ResponseContent(
            [OutputMessage(role="assistant", parts=parts)] if parts else [],
            [reason] if reason else [],
            found | tokens(mapping(body.get("usage")), USAGE),
        )


def _tool(item: Any) -> ToolDefinition:
    """Return the definition for one item of ``tools``.

    A tool without a name is named by its type.
    """
    value = mapping(item)
    kind = text(value.get("type")) or "function"
    name = text(value.get("name")) or text(value.get("server_label")) or kind
    return definition(kind, name, value, "parameters")


def _conversation(fields: Object) -> str | None:
    value = fields.get("conversation")
    return text(value) or text(mapping(value).get("id"))


def _finish_reason(body: Object, parts: list[Part]) -> str | None:
    status = body.get("status")
    if status == "completed":
        called = any(isinstance(part, ToolCall) for part in parts)
        return FinishReason.TOOL_CALL if called else FinishReason.STOP
    if status == "incomplete":
        reason = text(mapping(body.get("incomplete_details")).get("reason"))
        return _INCOMPLETE.get(reason, reason) if reason else FinishReason.ERROR
    return FinishReason.ERROR if status in ("failed", "cancelled") else None


class OpenAICompaction(OpenAIResponses):
    """OpenAI's compaction of a conversation: ``POST …/responses/compact``."""

    wire = "openai.compaction"

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: the compaction, without the messages that it keeps."""
        output = sequence(body.get("output"))
        made = [item for item in output if "compaction" in str(mapping(item).get("type"))]
        found = super().answer(body | {"output": made}, request, cut_short)
        parts = [part for message in found.messages for part in message.parts]
        if any(isinstance(part, Compaction) for part in parts):
            return msgspec.structs.replace(found, finish_reasons=[FinishReason.COMPACTION])
        return found


class OpenAIFetchedResponse(OpenAIResponses):
    """An earlier response of OpenAI, fetched: ``GET …/responses/resp_…``."""

    wire = "openai.fetched_response"
    operation = GenAiOperationName.FETCH_RESPONSE

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``, with usage only of a response that was made in background.

        The call that made any other response has its usage. A background call has none: it returns
        before the model has answered. Readers count the fetches of one response once (`counted_key`).
        """
        found = super().answer(body, request, cut_short)
        if body.get("background") is True:
            return found
        told = {
            name: value
            for name, value in found.attributes.items()
            if not name.startswith("gen_ai.usage.")
        }
        return msgspec.structs.replace(found, attributes=told)
