"""A provider that answers programs it has never seen: calls their tools, fills their schemas.

What it says is numbered, so that the same request is answered by other words each time: a replay that
mixes up two answers prints something else. A first turn calls the tools that are offered, the next one
gives the result: a value of the schema that is asked for, or words.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

from support.servers.scripted import (
    Reply,
    Request,
    ScriptedServer,
    anthropic_messages,
    anthropic_sse,
    chat_sse,
    json_reply,
    openai_chat,
    openai_embeddings,
    openai_responses,
    responses_sse,
)

Json = dict[str, Any]

TOOLS_AT_ONCE = 2
RESULT_TOOL = "final_result"
"""How a framework names a tool that is its way to ask for a structured answer."""


class Improviser:
    """Answers chat completions, responses, embeddings and messages. Safe from any thread."""

    def __init__(self, server: ScriptedServer) -> None:
        self._count = itertools.count(1)
        server.on("/v1/chat/completions", self.chat, repeat=True)
        server.on("/v1/responses", self.response, repeat=True)
        server.on("/v1/messages", self.message, repeat=True)
        server.on("/v1/embeddings", self.embeddings, repeat=True)

    def chat(self, request: Request) -> Reply:
        """A chat completion."""
        body, number = request.json, next(self._count)
        functions = [tool["function"] for tool in body.get("tools", ())]
        answered = any(one["role"] == "tool" for one in _since_user(body["messages"]))
        form = body.get("response_format", {})
        schema = form["json_schema"]["schema"] if form.get("type") == "json_schema" else None
        calls = [
            openai_chat.tool_call(
                f"call_{number}_{index}", one["name"], value(one["parameters"], number)
            )
            for index, one in enumerate(_called(functions, answered))
        ]
        whole = openai_chat.completion(
            None if calls else _said(schema, number),
            tool_calls=calls,
            id=f"chatcmpl-{number}",
            model=body["model"],
        )
        if not body.get("stream"):
            return json_reply(whole, headers={"x-request-id": f"req_{number}"})
        usage = body.get("stream_options", {}).get("include_usage", False)
        return chat_sse(whole, include_usage=usage)

    def response(self, request: Request) -> Reply:
        """A response."""
        body, number = request.json, next(self._count)
        given = body["input"]
        items: list[Json] = [{"role": "user", "content": given}] if isinstance(given, str) else given
        functions = [tool for tool in body.get("tools", ()) if tool["type"] == "function"]
        answered = any(one.get("type") == "function_call_output" for one in _since_user(items))
        form = body.get("text", {}).get("format", {})
        output = [
            openai_responses.function_call(
                f"call_{number}_{index}",
                one["name"],
                value(one["parameters"], number),
                id=f"fc_{number}_{index}",
            )
            for index, one in enumerate(_called(functions, answered))
        ]
        words = _said(form.get("schema"), number)
        whole = openai_responses.response(
            output or [openai_responses.message(words, id=f"msg_{number}")],
            id=f"resp_{number}",
            model=body["model"],
            previous_response_id=body.get("previous_response_id"),
        )
        return responses_sse(whole) if body.get("stream") else json_reply(whole)

    def message(self, request: Request) -> Reply:
        """A message."""
        body, number = request.json, next(self._count)
        tools = [tool for tool in body.get("tools", ()) if "input_schema" in tool]
        last = body["messages"][-1]["content"]
        answered = isinstance(last, list) and any(block["type"] == "tool_result" for block in last)
        form = body.get("output_config", {}).get("format") or body.get("output_format") or {}
        blocks = [
            anthropic_messages.tool_use(
                f"toolu_{number}_{index}", one["name"], value(one["input_schema"], number)
            )
            for index, one in enumerate(_called(tools, answered))
        ]
        if body.get("thinking", {}).get("type") in ("enabled", "adaptive"):
            blocks.insert(0, anthropic_messages.thinking(f"Thought {number}: five, seven, five."))
        if not any(block["type"] == "tool_use" for block in blocks):
            blocks.append(anthropic_messages.text(_said(form.get("schema"), number)))
        whole = anthropic_messages.message(blocks, id=f"msg_{number}", model=body["model"])
        return anthropic_sse(whole) if body.get("stream") else json_reply(whole)

    def embeddings(self, request: Request) -> Reply:
        """A vector per input."""
        body, number = request.json, next(self._count)
        inputs = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = [[len(str(one)) / 100, number / 100, 0.5] for one in inputs]
        return json_reply(
            openai_embeddings.embeddings(vectors, as_base64=body.get("encoding_format") == "base64")
        )


def _since_user(items: list[Json]) -> Iterable[Json]:
    """What came after the last thing that a user said."""
    return itertools.takewhile(lambda one: one.get("role") != "user", reversed(items))


def _called(tools: list[Json], answered: bool) -> list[Json]:
    """The tools that this turn calls: those offered, or, when they have answered, the result."""
    results = [tool for tool in tools if tool["name"].startswith(RESULT_TOOL)]
    others = [tool for tool in tools if tool not in results]
    if answered or not others:
        return results[:1]
    handoff = others[0]["name"].startswith("transfer_to_")
    return others[: 1 if handoff else TOOLS_AT_ONCE]


def _said(schema: Json | None, number: int) -> str:
    if schema is not None:
        return json.dumps(value(schema, number))
    return f"This is answer {number}, and these are its words."


def value(schema: Json, number: int, root: Json | None = None) -> Any:
    """A value that fits a JSON schema; its texts carry ``number``."""
    root = root or schema
    if "$ref" in schema:
        found: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return value(found, number, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return value(schema[choice][0], number, root)
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties: Json = schema.get("properties", {})
        return {name: value(one, number, root) for name, one in properties.items()}
    if kind == "array":
        items = schema.get("items", {"type": "string"})
        return [value(items, number + index, root) for index in range(max(2, schema.get("minItems", 0)))]
    if kind in ("integer", "number"):
        return max(schema.get("minimum", number), min(number, schema.get("maximum", number)))
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    return {"date": "2025-01-10"}.get(schema.get("format", ""), f"word {number}")
