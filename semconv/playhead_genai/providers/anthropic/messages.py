"""Anthropic messages, ``POST …/v1/messages`` (beta included), and ``…/v1/messages/count_tokens``."""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import (
    Compaction,
    FinishReason,
    InputMessage,
    OutputMessage,
    Part,
    ToolDefinition,
)
from playhead_genai.providers.anthropic.blocks import block_parts
from playhead_genai.providers.anthropic.message_fold import MessageFold
from playhead_genai.providers.dialect import Plain, ResponseContent, definition, tokens
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

_FINISH_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALL,
    "refusal": FinishReason.CONTENT_FILTER,
    "compaction": FinishReason.COMPACTION,
}
_USAGE = (
    (a.GEN_AI_USAGE_OUTPUT_TOKENS, "", "output_tokens"),
    (a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, "", "cache_read_input_tokens"),
    (a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS, "", "cache_creation_input_tokens"),
    (a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, "output_tokens_details", "thinking_tokens"),
)
_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class AnthropicMessages(Plain):
    """Anthropic messages: ``POST …/v1/messages``, beta included."""

    wire = "anthropic.messages"
    operation = GenAiOperationName.CHAT
    messages_field = "messages"
    instructions_field = "system"
    tools_fields = ("tools",)

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        config = mapping(request.get("output_config"))
        form = mapping(config.get("format")) or mapping(request.get("output_format"))
        return without_none(
            {
                a.GEN_AI_REQUEST_MODEL: text(request.get("model")),
                a.GEN_AI_REQUEST_MAX_TOKENS: integer(request.get("max_tokens")),
                a.GEN_AI_REQUEST_TEMPERATURE: number(request.get("temperature")),
                a.GEN_AI_REQUEST_TOP_P: number(request.get("top_p")),
                a.GEN_AI_REQUEST_TOP_K: integer(request.get("top_k")),
                a.GEN_AI_REQUEST_STOP_SEQUENCES: strings(request.get("stop_sequences")),
                a.GEN_AI_REQUEST_REASONING_LEVEL: text(config.get("effort")),
                a.GEN_AI_REQUEST_STREAM: True if request.get("stream") is True else None,
                a.GEN_AI_OUTPUT_TYPE: GenAiOutputType.JSON
                if form.get("type") == "json_schema"
                else None,
            }
        )

    def message(self, item: Any) -> InputMessage:
        """Return the message for one item of ``messages``."""
        if not isinstance(item, dict):
            return InputMessage(role="user", parts=block_parts(item))
        value = mapping(item)
        return InputMessage(
            role=text(value.get("role")) or "user",
            parts=block_parts(value.get("content")),
            extras=rest(value, "role", "content"),
        )

    def instructions(self, value: Any) -> list[Part]:
        """Return the parts for ``system``: text, or blocks."""
        return block_parts(value)

    def tools(self, value: Any) -> list[ToolDefinition]:
        """Return the definitions for an array of tools."""
        return [_tool(item) for item in sequence(value)]

    def fold(self) -> MessageFold:
        """Return a new fold for a stream."""
        return MessageFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message.

        Input tokens include those from and to the cache.
        """
        usage = mapping(body.get("usage"))
        parts = block_parts(body.get("content"))
        reason = text(body.get("stop_reason"))
        if reason is None and cut_short and (parts or body.get("id")):
            reason = FinishReason.ERROR
        counts = [count for name in _INPUT if (count := integer(usage.get(name))) is not None]
        found = without_none(
            {
                a.GEN_AI_RESPONSE_ID: text(body.get("id")),
                a.GEN_AI_RESPONSE_MODEL: text(body.get("model")),
                a.GEN_AI_CONVERSATION_COMPACTED: any(isinstance(p, Compaction) for p in parts) or None,
                a.GEN_AI_USAGE_INPUT_TOKENS: sum(counts) if counts else None,
            }
        )
        return ResponseContent(
            [OutputMessage(role=text(body.get("role")) or "assistant", parts=parts)] if parts else [],
            [_FINISH_REASONS.get(reason, reason)] if reason else [],
            found | tokens(usage, _USAGE),
        )


def _tool(item: Any) -> ToolDefinition:
    """Return the definition for one item of ``tools``. The provider's own tools have a type."""
    value = mapping(item)
    kind = text(value.get("type")) or "custom"
    name = text(value.get("name")) or text(value.get("mcp_server_name")) or kind
    return definition("function" if kind == "custom" else kind, name, value, "input_schema")


class AnthropicCountTokens(AnthropicMessages):
    """Anthropic's token count: ``POST …/v1/messages/count_tokens``. It has no messages and no usage."""

    wire = "anthropic.count_tokens"
    operation = "count_tokens"

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return nothing: a count is no usage."""
        return ResponseContent()
