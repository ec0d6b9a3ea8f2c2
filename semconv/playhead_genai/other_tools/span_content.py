"""Content in spans that hold it in one attribute per direction: arguments and result of the SDK's call.

Spans of Langfuse, of LangSmith and of the Vercel AI SDK have it so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from playhead_genai.other_tools.conversations import call_attributes, tool_attributes
from playhead_genai.other_tools.values import decoded, list_in, objects_in
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

_CALLS = (Operation.CHAT, Operation.TEXT_COMPLETION, Operation.GENERATE_CONTENT)
_PAIRS: Final = (
    ("langfuse.observation.input", "langfuse.observation.output"),
    ("gen_ai.prompt", "gen_ai.completion"),  # LangSmith
    ("ai.toolCall.args", "ai.toolCall.result"),  # Vercel
)
"""Attributes with what was sent and what was received, as JSON or as plain text."""
_VERCEL: Final = ("ai.prompt.messages", "ai.response.text", "ai.response.toolCalls")
HOLDERS: Final = frozenset((*(name for pair in _PAIRS for name in pair), *_VERCEL))
"""All of these attributes."""


def content_in(at: Mapping[str, Any], operation: str) -> dict[str, Any]:
    """Return the content attributes of a span in the conventions' words; none if it has no such form.

    >>> content_in({"gen_ai.prompt": '{"messages": [{"role": "user", "content": "hi"}]}'}, "chat")
    {'gen_ai.input.messages': '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]'}
    """
    if HOLDERS.isdisjoint(at):  # as of most spans
        return {}
    tools: Any = None
    sent, received = next(
        ((at.get(one), at.get(other)) for one, other in _PAIRS if one in at or other in at), (None, None)
    )
    if not all(isinstance(one, str | None) for one in (sent, received)):
        return {}  # a list: attributes of another meaning
    try:
        if operation == Operation.EXECUTE_TOOL:
            found = tool_attributes("", decoded(sent), decoded(received))
            del found[a.GEN_AI_TOOL_NAME]
        elif operation in _CALLS:
            if any(name in at for name in _VERCEL):
                sent, received, tools = _vercel(at)
            found = call_attributes(sent, received, operation=operation, tools=tools)
        else:
            return {}
    except (ValueError, TypeError, RecursionError):  # what is nested too deeply is not content
        return {}
    return {name: value for name, value in found.items() if value and name != a.GEN_AI_OPERATION_NAME}


def _vercel(at: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """What was sent, what was received, and the tools."""
    held = dict(at)
    sent = [_vercel_message(one) for one in objects_in(held, "ai.prompt.messages")]
    blocks: list[dict[str, Any]] = []
    if text := at.get("ai.response.text"):
        blocks.append({"type": "text", "text": text})
    blocks += map(_vercel_block, objects_in(held, "ai.response.toolCalls"))
    tools = [decoded(one) for one in list_in(held, "ai.prompt.tools")]
    return sent, [{"role": "assistant", "content": blocks}] if blocks else None, tools


def _vercel_message(message: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(message.get("content"), list):
        return message
    blocks = [_vercel_block(one) for one in objects_in(message, "content")]
    role = "user" if message.get("role") == "tool" else message.get("role")
    return {"role": role, "content": blocks}


def _vercel_block(block: dict[str, Any]) -> dict[str, Any]:
    """A block as Anthropic writes it, which `content_events` reads."""
    if block.get("type") == "tool-result":
        output = block.get("output", block.get("result"))
        if isinstance(output, dict) and "value" in output:
            output = cast("dict[str, Any]", output)["value"]
        return {"type": "tool_result", "tool_use_id": block.get("toolCallId"), "content": output}
    if "toolName" in block:
        asked = block.get("input", block.get("args"))
        return {
            "type": "tool_use",
            "id": block.get("toolCallId"),
            "name": block["toolName"],
            "input": decoded(asked),
        }
    return block
