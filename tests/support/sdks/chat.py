"""What SDKs of OpenAI's chat wire have in common."""

from __future__ import annotations

from typing import Any

from support.sdks import cases


def asked(wants: str) -> dict[str, Any]:
    """The fields of a request."""
    content: Any = cases.HELLO
    if wants == "image":
        picture = {"url": f"data:image/png;base64,{cases.PIXEL}"}
        content = [
            {"type": "text", "text": cases.HELLO},
            {"type": "image_url", "image_url": picture},
        ]
    fields: dict[str, Any] = {
        "model": cases.MODEL,
        "messages": [{"role": "user", "content": content}],
    }
    if wants == "tools":
        tool = {"name": cases.TOOL, "description": cases.ABOUT, "parameters": cases.SCHEMA}
        fields["tools"] = [{"type": "function", "function": tool}]
    if wants == "schema":
        schema = {"name": "answer", "schema": cases.SCHEMA}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    return fields


def said(message: Any) -> object:
    """What a message, or a piece of one, says."""
    calls = [(one.function.name, one.function.arguments) for one in message.tool_calls or ()]
    return calls or message.content
