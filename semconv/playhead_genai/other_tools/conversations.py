"""Messages of a model call as other tools store them, in the GenAI conventions.

Tools store what the SDK was given: messages of OpenAI, blocks of Anthropic, serialized messages of
LangChain, or plain text. Blocks and tool calls are read as those in events (`content_events`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from playhead_genai.other_tools.content_events import message_of
from playhead_genai.other_tools.values import decoded, json_text, list_in, object_in, objects_in
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
}
"""Types of LangChain's messages, and roles."""
_HOLDERS = (
    "messages",
    "input",
    "output",
    "choices",
    "generations",
    "message",
    "prompt",
    "prompts",
    "content",
)
"""Where an object has its messages."""
_DEPTH = 6
"""Levels of lists and objects around messages."""


def call_attributes(
    sent: Any, received: Any, *, operation: str = Operation.CHAT, tools: Any = None
) -> dict[str, Any]:
    """Return the content attributes of a model call.

    ``sent``, ``received``: input and output as the tool has them. ``tools``: definitions; if None, those
    in ``sent``.
    """
    found: dict[str, Any] = {a.GEN_AI_OPERATION_NAME: operation}
    if operation == Operation.EMBEDDINGS:
        return found
    inputs, outputs = messages_in(sent, "user"), messages_in(received, "assistant")
    if inputs:
        found[a.GEN_AI_INPUT_MESSAGES] = json_text(inputs)
    if outputs:
        reasons = [one.pop("finish_reason", None) for one in outputs]
        found[a.GEN_AI_OUTPUT_MESSAGES] = json_text(outputs)
        if any(reasons):
            found[a.GEN_AI_RESPONSE_FINISH_REASONS] = [str(one or "") for one in reasons]
    asked = decoded(sent)
    fields = cast("dict[str, Any]", asked) if isinstance(asked, dict) else {}
    if instructions := fields.get("instructions") or fields.get("system"):  # Responses, Anthropic
        system = message_of({"content": instructions}, "system")["parts"]
        found[a.GEN_AI_SYSTEM_INSTRUCTIONS] = json_text(system)
    tools = tools or fields.get("tools")
    if isinstance(tools, list) and tools:
        found[a.GEN_AI_TOOL_DEFINITIONS] = json_text([_tool(one) for one in cast("list[Any]", tools)])
    return found


def tool_attributes(name: str, arguments: Any, result: Any) -> dict[str, Any]:
    """Return the attributes of the execution of a tool."""
    return {
        a.GEN_AI_OPERATION_NAME: Operation.EXECUTE_TOOL,
        a.GEN_AI_TOOL_NAME: name,
        a.GEN_AI_TOOL_CALL_ARGUMENTS: None if arguments is None else json_text(arguments),
        a.GEN_AI_TOOL_CALL_RESULT: None if result is None else json_text(result),
    }


def messages_in(value: Any, role: str, depth: int = 0) -> list[dict[str, Any]]:
    """Return the messages in a value of any form; ``role``: of text without a role.

    >>> messages_in({"messages": [{"type": "human", "data": {"content": "hi"}}]}, "user")
    [{'role': 'user', 'parts': [{'type': 'text', 'content': 'hi'}]}]
    """
    value = decoded(value)
    if value is None or value == "" or depth > _DEPTH:
        return []
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if items and all(isinstance(one, list) for one in items):  # batches: LangChain's have one entry
            items = cast("list[Any]", items[0])
        return [one for item in items for one in messages_in(item, role, depth + 1)]
    if not isinstance(value, dict):
        return [message_of({"content": json_text(value)}, role)]
    fields = _unpacked(cast("dict[str, Any]", value))
    if fields.get("type") in ("function_call", "function_call_output"):  # items of OpenAI's Responses
        return [_item(fields)]
    if isinstance(fields.get("role"), str) and not isinstance(fields.get("parts"), list):
        return [_message(fields, role)]
    if isinstance(fields.get("role"), str):  # the form of the conventions, or of Gemini
        return [_of_parts(fields)]
    for name in _HOLDERS:
        inner = fields.get(name)
        if inner is not None and not (name == "content" and isinstance(inner, str | list)):
            found = messages_in(inner, role, depth + 1)
            if found and isinstance(reason := fields.get("finish_reason"), str):
                found[-1]["finish_reason"] = reason
            return _with_calls(found, fields)
    if "content" in fields or "tool_calls" in fields:
        return [_message(fields, role)]
    if isinstance(fields.get("text"), str):
        return [message_of({"content": fields["text"]}, role)]
    if all(one is None for one in fields.values()):  # as LangSmith writes of a call that failed
        return []
    return [message_of({"content": json_text(fields)}, role)]


def _with_calls(found: list[dict[str, Any]], fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    return found or ([_message(fields, "assistant")] if fields.get("tool_calls") else [])


def _item(fields: Mapping[str, Any]) -> dict[str, Any]:
    if fields["type"] == "function_call":
        call = {
            "id": fields.get("call_id"),
            **{name: fields.get(name) for name in ("name", "arguments")},
        }
        return message_of({"tool_calls": [call]}, "assistant")
    return message_of({"id": fields.get("call_id"), "content": fields.get("output")}, "tool")


def _unpacked(fields: dict[str, Any]) -> dict[str, Any]:
    """A serialized message of LangChain as its fields; anything else as it is."""
    kind = fields.get("type")
    inner = object_in(fields, "kwargs") or object_in(fields, "data")
    if fields.get("lc") and inner:
        path = list_in(fields, "id")
        name = str(path[-1]) if path else ""
        role = _ROLES.get(name) or _ROLES.get(str(inner.get("type")), str(inner.get("role") or ""))
        return {**inner, "role": role} if role else inner
    if isinstance(kind, str) and (role := _ROLES.get(kind, kind if kind in ("system", "tool") else "")):
        fields = inner or fields
        if "content" in fields:
            return {**fields, "role": role}
    return fields


def _message(fields: Mapping[str, Any], role: str) -> dict[str, Any]:
    """One message; ids, calls and finish reasons where OpenAI or LangChain has them."""
    said = dict(fields)
    given = str(said.get("role") or role)
    said["role"] = given = {"model": "assistant", **_ROLES}.get(given, given)
    if given == "tool":
        said["id"] = said.get("tool_call_id") or said.get("id")
    calls: Any = said.get("tool_calls") or object_in(said, "additional_kwargs").get("tool_calls")
    if isinstance(calls, list):
        said["tool_calls"] = [_called(one) for one in objects_in({"calls": calls}, "calls")]
        if isinstance(said.get("content"), list):  # the same calls as blocks of content
            blocks = cast("list[Any]", said["content"])
            said["content"] = [one for one in blocks if not _is_use(one)] or ""
    made = message_of(said, given)
    reason = said.get("finish_reason") or object_in(said, "response_metadata").get("finish_reason")
    return {**made, "finish_reason": reason} if isinstance(reason, str) else made


def _is_use(block: Any) -> bool:
    return isinstance(block, dict) and cast("dict[str, Any]", block).get("type") == "tool_use"


def _called(call: dict[str, Any]) -> dict[str, Any]:
    return {**call, "arguments": call["args"]} if "args" in call and "function" not in call else call


def _of_parts(fields: dict[str, Any]) -> dict[str, Any]:
    role = str(fields["role"])
    parts = [one if "type" in one else _part(one) for one in objects_in(fields, "parts")]
    return {"role": "assistant" if role == "model" else role, "parts": parts}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """A part of Gemini."""
    call, answer = object_in(part, "functionCall"), object_in(part, "functionResponse")
    if call:
        named = {"id": call.get("id"), "name": str(call.get("name", ""))}
        return {"type": "tool_call", **named, "arguments": call.get("args")}
    if answer:
        return {"type": "tool_call_response", "id": answer.get("id"), "response": answer.get("response")}
    return {"type": "text", "content": json_text(part.get("text", part))}


def _tool(tool: Any) -> dict[str, Any]:
    """A definition, without the nesting of OpenAI's."""
    if not isinstance(tool, dict):
        return {"type": "function", "name": json_text(tool)}
    said = cast("dict[str, Any]", tool)
    named = object_in(said, "function") or said
    return {"type": "function", **{name: one for name, one in named.items() if one is not None}}
