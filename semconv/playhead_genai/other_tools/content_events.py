"""Messages of a model call that its instrumentation sent as events: log records, or events of the span.

The conventions have had several forms: one event with the attributes of a span
(``gen_ai.client.inference.operation.details``), and before that one event per message, with the message
in its body or, as an event of the span, in its attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard, cast

import msgspec

from playhead_semconv import attributes as a
from playhead_semconv import events as e

_ROLES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_CHOICE = "gen_ai.choice"
_WHOLE = {
    "gen_ai.content.prompt": ("gen_ai.prompt", a.GEN_AI_INPUT_MESSAGES),
    "gen_ai.content.completion": ("gen_ai.completion", a.GEN_AI_OUTPUT_MESSAGES),
}
"""Events that hold all messages of one direction: the attribute with them, and what they become."""
CONTENT_EVENTS = frozenset((e.GEN_AI_CLIENT_INFERENCE_OPERATION_DETAILS, *_ROLES, _CHOICE, *_WHOLE))
"""Names of the events whose content belongs to the messages of their span."""

_IN_JSON = "gen_ai.event.content"
"""The attribute in which the SDKs of Azure put the body of an event, as JSON."""
_MESSAGES = (
    a.GEN_AI_SYSTEM_INSTRUCTIONS,
    a.GEN_AI_INPUT_MESSAGES,
    a.GEN_AI_OUTPUT_MESSAGES,
    a.GEN_AI_TOOL_DEFINITIONS,
)


class ContentEvent(NamedTuple):
    """An event with content of a model call."""

    name: str
    time_ns: int
    attributes: Mapping[str, Any]
    body: Any = None
    """The body of a log record; None for an event of a span."""


def attributes_of_events(events: Iterable[ContentEvent]) -> dict[str, Any]:
    """Return the messages in the events of one call, as attributes that its span could have.

    >>> event = ContentEvent("gen_ai.user.message", 1, {}, {"content": "hello"})
    >>> attributes_of_events([event])
    {'gen_ai.input.messages': [{'role': 'user', 'parts': [{'type': 'text', 'content': 'hello'}]}]}
    """
    whole: dict[str, Any] = {}
    single: dict[str, list[dict[str, Any]]] = {}
    for event in sorted(events, key=lambda one: one.time_ns):
        said = _content_of(event)
        if event.name == e.GEN_AI_CLIENT_INFERENCE_OPERATION_DETAILS:
            whole |= {name: said[name] for name in _MESSAGES if said.get(name) is not None}
        elif event.name in _WHOLE:
            source, target = _WHOLE[event.name]
            messages = _objects(_decoded(said.get(source)))
            if messages:
                single[target] = [message_of(one, str(one.get("role", ""))) for one in messages]
        elif event.name == _CHOICE:
            single.setdefault(a.GEN_AI_OUTPUT_MESSAGES, []).append(_choice(said))
        elif event.name in _ROLES:
            role = _ROLES[event.name]
            message = message_of(said, role)
            if role == "system":
                single.setdefault(a.GEN_AI_SYSTEM_INSTRUCTIONS, []).extend(message["parts"])
            else:
                single.setdefault(a.GEN_AI_INPUT_MESSAGES, []).append(message)
    return {**single, **whole}


def _content_of(event: ContentEvent) -> dict[str, Any]:
    """The fields of an event, wherever its sender puts them: in the body or in attributes."""
    found = {**event.attributes}
    for value in (_decoded(found.get(_IN_JSON)), _decoded(event.body)):
        if isinstance(value, dict):
            found |= cast("dict[str, Any]", value)
        elif value is not None:
            found.setdefault("content", value)
    return found


def _choice(said: Mapping[str, Any]) -> dict[str, Any]:
    value = _decoded(said.get("message"))
    message: Mapping[str, Any] = said if value is None else {"content": value}
    if isinstance(value, dict):
        message = cast("dict[str, Any]", value)
    made = message_of({"tool_calls": said.get("tool_calls"), **message}, "assistant")
    reason = said.get("finish_reason")
    return {**made, "finish_reason": reason} if isinstance(reason, str) else made


def message_of(said: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return a message of the conventions from one in a provider's form; ``role``: if it names none."""
    given = said.get("role")
    role = given if isinstance(given, str) and given else role
    content = said.get("content")
    if role == "tool":
        response = _blocks(content)
        if response is not None and any("toolResult" in one for one in response):
            return {"role": role, "parts": [_part(one) for one in response]}
        answer = {"type": "tool_call_response", "id": said.get("id"), "response": _decoded(content)}
        return {"role": role, "parts": [answer]}
    blocks = _blocks(content)
    if blocks is not None:
        parts = [_part(one) for one in blocks]
    else:
        parts = [] if content is None or content == "" else [_text(content)]
    calls = _objects(_decoded(said.get("tool_calls"))) or []
    return {"role": role, "parts": [*parts, *map(_call, calls)]}


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block of content as providers write it, as a part of the conventions."""
    kind = block.get("type")
    for name in ("toolUse", "tool_use"):
        use = block.get(name) if kind is None else block if kind == name else None
        if isinstance(use, dict):
            use = cast("dict[str, Any]", use)
            id = use.get("toolUseId", use.get("id"))
            return _tool_call(id, use.get("name"), use.get("input"))
    for name in ("toolResult", "tool_result"):
        result = block.get(name) if kind is None else block if kind == name else None
        if isinstance(result, dict):
            result = cast("dict[str, Any]", result)
            id = result.get("toolUseId", result.get("tool_use_id"))
            return {"type": "tool_call_response", "id": id, "response": result.get("content")}
    if kind in (None, "text", "input_text", "output_text") and "text" in block:
        return _text(block["text"])
    return dict(block) if isinstance(kind, str) else _text(block)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function: Any = call.get("function")
    named = cast("dict[str, Any]", function) if isinstance(function, dict) else call
    return _tool_call(call.get("id"), named.get("name"), named.get("arguments"))


def _tool_call(id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    named = {"name": str(name or ""), "arguments": _decoded(arguments)}
    return {"type": "tool_call", "id": id if isinstance(id, str) else None, **named}


def _text(value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return {"type": "text", "content": text}


def _blocks(value: Any) -> list[dict[str, Any]] | None:
    """Content as a list of blocks; None if it is plain text or anything else."""
    found = _decoded(value)
    if isinstance(found, dict):
        found = [cast("dict[str, Any]", found)]
    blocks = _objects(found)
    known = ("type", "text", "toolUse", "toolResult")
    return blocks if blocks and all(any(key in one for key in known) for one in blocks) else None


def _objects(value: Any) -> list[dict[str, Any]] | None:
    return value if _is_list_of_objects(value) else None


def _is_list_of_objects(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    items = cast("list[Any]", value)
    return isinstance(value, list) and all(isinstance(one, dict) for one in items)


def _decoded(value: Any) -> Any:
    """Text that holds a JSON object or list, decoded; anything else as it is."""
    try:
        return msgspec.json.decode(value) if isinstance(value, str) and value[:1] in "[{" else value
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return value
