"""Messages and calls of tools in words, as people read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

from playhead_genai.messages import (
    InputMessage,
    OutputMessage,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolCallResponse,
)

OF_CONVENTIONS = (
    "client.",
    "code.",
    "error.",
    "exception.",
    "gen_ai.",
    "http.",
    "mcp.",
    "network.",
    "openai.",
    "peer.",
    "playhead.",
    "rpc.",
    "server.",
    "thread.",
    "url.",
    "user_agent.",
)
"""Beginnings of names of attributes that conventions define: what they say is shown in other words."""


def text_of(value: Any) -> str:
    """A text unchanged, anything else as JSON; values without a JSON form in Python's notation."""
    return value if isinstance(value, str) else spelt(value)


def spelt(value: Any) -> str:
    """A value as JSON; values without a JSON form in Python's notation."""
    return json.dumps(value, ensure_ascii=False, default=repr)


def named_arguments(value: Any) -> dict[str, Any] | None:
    """The arguments of a tool by name; None if they are no JSON object."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def arguments_of(value: Any) -> str:
    """The arguments of a tool in one line: a single one without its name.

    >>> arguments_of('{"q": "order 81"}'), arguments_of({"city": "Oslo", "days": 3})
    ('"order 81"', 'city="Oslo", days=3')
    """
    named = named_arguments(value)
    if named is None:
        return "" if value is None else text_of(value)
    if len(named) == 1:
        return spelt(next(iter(named.values())))
    return ", ".join(f"{name}={spelt(one)}" for name, one in named.items())


def text_of_messages(messages: Iterable[InputMessage | OutputMessage]) -> str:
    """What messages say: text, results of tools, and the tools that they call; else reasoning."""
    parts = [part for message in messages for part in message.parts]
    told = [words for part in parts if (words := _words(part))]
    calls = [f"{one.name}({arguments_of(one.arguments)})" for one in parts if isinstance(one, ToolCall)]
    if calls:
        told.append(f"calls {', '.join(calls)}")
    return " ".join(told) or " ".join(part.content for part in parts if isinstance(part, Reasoning))


def _words(part: Part) -> str:
    if isinstance(part, Text):
        return part.content
    return text_of(part.response) if isinstance(part, ToolCallResponse) else ""


def last_question(messages: Sequence[InputMessage]) -> str:
    """What was asked: the last message of a user; empty if there is none."""
    users = [message for message in messages if message.role == "user"]
    return text_of_messages(users[-1:])


def news(messages: Sequence[InputMessage]) -> Sequence[InputMessage]:
    """The messages that a call adds to what was said before: those after the model's last one."""
    spoken = [at for at, message in enumerate(messages[:-1]) if message.role == "assistant"]
    return messages[spoken[-1] + 1 :] if spoken else messages


def calls_in(messages: Iterable[InputMessage | OutputMessage]) -> dict[str, ToolCall]:
    """The calls of tools among messages, by id."""
    parts = (part for message in messages for part in message.parts)
    return {part.id: part for part in parts if isinstance(part, ToolCall) and part.id}
