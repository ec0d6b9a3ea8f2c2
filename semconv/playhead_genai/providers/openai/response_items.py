"""Items of OpenAI's Responses API, in requests and in responses: converts an item to role and parts."""

from __future__ import annotations

from typing import Any

from playhead_genai.messages import (
    Blob,
    Compaction,
    Generic,
    InputMessage,
    Part,
    Reasoning,
    ServerToolCall,
    ServerToolCallResponse,
    ToolCall,
    ToolCallResponse,
)
from playhead_genai.providers.openai.common import content_parts
from playhead_genai.providers.reading import Object, mapping, parsed_arguments, rest, sequence, text

_CLIENT_CALLS = {
    "function_call": "",
    "custom_tool_call": "",
    "computer_call": "computer",
    "local_shell_call": "local_shell",
    "shell_call": "shell",
    "apply_patch_call": "apply_patch",
}
"""Calls that the program executes, with the name of the tool where the item does not give it."""

_SERVER_CALLS = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "tool_search_call",
    }
)
_RESULTS = ("results", "outputs", "output", "error", "result")
"""Fields of a provider's tool call that hold the tool's answer."""

_USER_ITEMS = frozenset({"item_reference", "mcp_approval_response", "compaction_trigger"})


def item_message(item: Any) -> InputMessage:
    """Return the message for one item of ``input``; a string is a message of the user."""
    if not isinstance(item, dict):
        return InputMessage(role="user", parts=content_parts(item))
    value = mapping(item)
    role, parts = item_parts(value)
    extras: Object = {}
    if is_message(value):
        extras = rest(value, "type", "role", "content", "name", "status")
    return InputMessage(
        role=role, parts=parts, name=text(value.get("name")) if extras else None, extras=extras
    )


def is_message(value: Object) -> bool:
    """Whether ``value`` is a message with its content in parts; requests may omit the ``type``."""
    return value.get("type", "message") == "message" and "role" in value


def item_parts(value: Object) -> tuple[str, list[Part]]:
    """Return role and parts of one item. An unknown item becomes a generic part."""
    kind = text(value.get("type")) or ""
    if is_message(value):
        return text(value.get("role")) or "user", content_parts(value.get("content"))
    if kind == "reasoning":
        return "assistant", [_reasoning(value)]
    if kind in _CLIENT_CALLS:
        return "assistant", [_client_call(value, kind)]
    if kind.endswith("_call_output"):
        return "tool", [_client_output(value)]
    if kind in _SERVER_CALLS:
        return "assistant", _server_call(value, kind)
    if kind == "compaction":
        extras = rest(value, "type", "id")
        return "assistant", [Compaction(id=text(value.get("id")), extras=extras)]
    if kind == "additional_tools":
        role = text(value.get("role")) or "developer"
        return role, [Generic(type=kind, extras=rest(value, "type", "role"))]
    role = "user" if kind in _USER_ITEMS else "assistant"
    return role, [Generic(type=kind or "item", extras=rest(value, "type"))]


def _reasoning(value: Object) -> Reasoning:
    """Use the reasoning as content, else its summary; with reasoning, the summary is an extra."""
    content, summary = _joined(value.get("content")), _joined(value.get("summary"))
    shown = ("type", "id", "status", "content") + (() if content else ("summary",))
    return Reasoning(content=content or summary, extras=_named(value) | rest(value, *shown))


def _joined(value: Any) -> str:
    texts = (text(mapping(item).get("text")) for item in sequence(value))
    return "\n\n".join(item for item in texts if item)


def _client_call(value: Object, kind: str) -> ToolCall:
    name = text(value.get("name")) or _CLIENT_CALLS[kind]
    field = "arguments" if kind == "function_call" else "input" if kind == "custom_tool_call" else ""
    known = ("type", "id", "call_id", "name", "status")
    if not field:
        arguments = rest(value, *known)
        return ToolCall(id=_call_id(value), name=name, arguments=arguments, extras=_named(value))
    arguments = value.get(field)
    if isinstance(arguments, str) and field == "arguments":
        arguments = parsed_arguments(arguments)
    extras = _named(value) | rest(value, *known, field)
    return ToolCall(id=_call_id(value), name=name, arguments=arguments, extras=extras)


def _client_output(value: Object) -> ToolCallResponse:
    extras = _named(value) | rest(value, "type", "id", "call_id", "status", "output")
    return ToolCallResponse(id=_call_id(value), response=value.get("output"), extras=extras)


def _call_id(value: Object) -> str | None:
    return text(value.get("call_id")) or text(value.get("id"))


def _named(value: Object) -> Object:
    """Return the item's own id next to that of the call, and its status unless it is completed."""
    extras: Object = {}
    if identity := text(value.get("id")):
        extras["item_id"] = identity
    if (status := text(value.get("status"))) and status != "completed":
        extras["status"] = status
    return extras


def _server_call(value: Object, kind: str) -> list[Part]:
    tool = kind.removesuffix("_call")
    identity = text(value.get("id"))
    details = {"type": tool} | rest(value, "type", "id", "status", "name", *_RESULTS)
    if (arguments := details.get("arguments")) and isinstance(arguments, str):
        details["arguments"] = parsed_arguments(arguments)
    if (status := text(value.get("status"))) and status != "completed":
        details["status"] = status
    name = text(value.get("name")) or tool
    parts: list[Part] = [ServerToolCall(id=identity, name=name, server_tool_call=details)]
    results = {name: value[name] for name in _RESULTS if value.get(name) is not None}
    if tool == "image_generation" and (image := text(results.pop("result", None))):
        form = text(value.get("output_format")) or "png"
        parts.append(Blob(mime_type=f"image/{form}", modality="image", content=image))
    if results:
        response = {"type": tool} | results
        parts.append(ServerToolCallResponse(id=identity, server_tool_call_response=response))
    return parts
