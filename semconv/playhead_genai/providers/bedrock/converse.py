"""Bedrock's Converse API, ``POST …/model/NAME/converse`` and ``/converse-stream``; Nova models too."""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import FinishReason, InputMessage, OutputMessage, Part, ToolDefinition
from playhead_genai.providers.bedrock.blocks import block_parts
from playhead_genai.providers.bedrock.converse_fold import ConverseFold
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
from playhead_semconv.values import GenAiOperationName, GenAiProviderName

_REASONS = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALL,
    "guardrail_intervened": FinishReason.CONTENT_FILTER,
    "content_filtered": FinishReason.CONTENT_FILTER,
}
_INPUT = (
    "inputTokens",
    "cacheReadInputTokens",
    "cacheWriteInputTokens",
)
_USAGE = (
    (a.GEN_AI_USAGE_OUTPUT_TOKENS, "", "outputTokens"),
    (a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, "", "cacheReadInputTokens"),
    (a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS, "", "cacheWriteInputTokens"),
)


class BedrockConverse(Plain):
    """Bedrock's Converse API: ``POST …/model/NAME/converse`` and ``/converse-stream``; Nova, too."""

    wire = "bedrock.converse"
    provider = GenAiProviderName.AWS_BEDROCK
    operation = GenAiOperationName.CHAT
    messages_field = "messages"
    instructions_field = "system"
    tools_fields = ("toolConfig",)

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields; Nova has names of its own for some."""
        config = mapping(request.get("inferenceConfig"))
        more = mapping(request.get("additionalModelRequestFields"))
        limit = config.get("maxTokens", config.get("max_new_tokens"))
        top_k = config.get("topK", config.get("top_k", more.get("top_k")))
        return without_none(
            {
                a.GEN_AI_REQUEST_MAX_TOKENS: integer(limit),
                a.GEN_AI_REQUEST_TEMPERATURE: number(config.get("temperature")),
                a.GEN_AI_REQUEST_TOP_P: number(config.get("topP", config.get("top_p"))),
                a.GEN_AI_REQUEST_TOP_K: integer(top_k),
                a.GEN_AI_REQUEST_STOP_SEQUENCES: strings(config.get("stopSequences")),
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
        """Return the parts for ``system``: blocks."""
        return block_parts(value)

    def tools(self, value: Any) -> list[ToolDefinition]:
        """Return the definitions in ``toolConfig``."""
        found: list[ToolDefinition] = []
        for item in sequence(mapping(value).get("tools")):
            for kind, tool in mapping(item).items():
                if kind == "toolSpec":
                    fields = mapping(tool)
                    schema = mapping(fields.get("inputSchema")).get("json")
                    fields = rest(fields, "inputSchema") | without_none({"inputSchema": schema})
                    name = text(fields.get("name")) or ""
                    found.append(definition("function", name, fields, "inputSchema"))
                elif kind != "cachePoint":
                    name = text(mapping(tool).get("name")) or kind
                    extras = rest(mapping(tool), "type", "name")
                    found.append(ToolDefinition(type=kind, name=name, extras=extras))
        return found

    def fold(self) -> ConverseFold:
        """Return a new fold for a stream."""
        return ConverseFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message.

        Input tokens include those from and to the cache.
        """
        message = mapping(mapping(body.get("output")).get("message"))
        usage = mapping(body.get("usage"))
        usage = usage | {
            full: usage[short] for full, short in _OF_NOVA if short in usage and full not in usage
        }
        parts = block_parts(message.get("content"))
        reason = text(body.get("stopReason"))
        if reason is None and cut_short and (parts or message):
            reason = FinishReason.ERROR
        counts = [count for name in _INPUT if (count := integer(usage.get(name))) is not None]
        found = without_none({a.GEN_AI_USAGE_INPUT_TOKENS: integer(sum(counts)) if counts else None})
        return ResponseContent(
            [OutputMessage(role=text(message.get("role")) or "assistant", parts=parts)] if parts else [],
            [_REASONS.get(reason, reason)] if reason else [],
            found | tokens(usage, _USAGE),
        )


_OF_NOVA = (
    ("cacheReadInputTokens", "cacheReadInputTokenCount"),
    ("cacheWriteInputTokens", "cacheWriteInputTokenCount"),
)
"""Names of Converse, and those that Nova gives to the same counts."""
