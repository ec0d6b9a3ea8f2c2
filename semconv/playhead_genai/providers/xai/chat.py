"""xAI's chat over gRPC: ``xai_api.Chat/GetCompletion``, and the same as a stream.

Its messages say what those of OpenAI's chat say, so they are turned into these.
"""

from __future__ import annotations

import json
from typing import Any

from playhead_core.facts import Value
from playhead_genai.providers.dialect import ResponseContent
from playhead_genai.providers.merging import updated
from playhead_genai.providers.openai.chat import OpenAIChat
from playhead_genai.providers.reading import (
    Object,
    mapping,
    parsed_arguments,
    rest,
    sequence,
    text,
    without_none,
)
from playhead_genai.providers.xai.grpc import read_body, single
from playhead_genai.providers.xai.protobuf import read
from playhead_genai.providers.xai.schema import CHUNK, DEFERRED, REQUEST, RESPONSE
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiProviderName


class XaiChat(OpenAIChat):
    """xAI's chat over gRPC: ``xai_api.Chat/GetCompletion``."""

    wire = "xai.chat"
    provider = GenAiProviderName.X_AI
    tools_fields = ("tools",)
    answers = RESPONSE
    """What the messages of an answer are."""

    def unwrapped(self, body: bytes) -> bytes:
        """Return the request in JSON, as OpenAI's chat has it."""
        try:
            asked = read(body, REQUEST)
        except (ValueError, RecursionError):
            return b""
        asked["messages"] = [_message(item) for item in sequence(asked.get("messages"))]
        if "tools" in asked:
            asked["tools"] = [_tool(mapping(item)) for item in sequence(asked["tools"])]
        form = mapping(asked.get("response_format"))
        if form:
            asked["response_format"] = {"type": form.get("format_type"), "schema": form.get("schema")}
        return json.dumps(asked).encode()

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        found = super().parameters(request)
        del found[a.OPENAI_API_TYPE]
        return found

    def media(self, kind: str, data: bytes) -> Object | None:
        """Return the answer as OpenAI's chat has it."""
        return read_body(kind, data, self.answers, self._body)

    def _body(self, said: list[Object]) -> Object:
        return answered(single(said))

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message per choice."""
        found = super().answer(body, request, cut_short)
        found.attributes.pop(a.OPENAI_RESPONSE_SYSTEM_FINGERPRINT, None)
        return found


class XaiChatStream(XaiChat):
    """xAI's chat over gRPC as a stream: ``xai_api.Chat/GetCompletionChunk``."""

    wire = "xai.chat_stream"
    answers = CHUNK

    def _body(self, said: list[Object]) -> Object:
        body: Object = {}
        choices: dict[int, Object] = {}
        for item in (item for one in said for item in sequence(one.get("outputs"))):
            output, delta = mapping(item), mapping(mapping(item).get("delta"))
            choice = choices.setdefault(output.get("index", 0), {"message": {}})
            message = choice["message"]
            for name in ("content", "reasoning_content"):
                if added := text(delta.get(name)):
                    message.setdefault(name, []).append(added)
            message.setdefault("tool_calls", []).extend(sequence(delta.get("tool_calls")))
            message["role"] = delta.get("role") or message.get("role")
            choice["finish_reason"] = output.get("finish_reason") or choice.get("finish_reason")
        for one in said:
            body = updated(body, rest(one, "outputs"))
        return {
            **body,
            "choices": [
                {
                    "message": _spoken(_joined(choice["message"])),
                    "finish_reason": choice["finish_reason"],
                }
                for _, choice in sorted(choices.items())
            ],
            "usage": usage_of(mapping(body.get("usage"))),
        }

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``; a choice that has not ended is one that was cut short."""
        ended = all(mapping(item).get("finish_reason") for item in sequence(body.get("choices")))
        found = super().answer(body, request, not ended)
        found.attributes[a.GEN_AI_REQUEST_STREAM] = True
        return found


def answered(said: Object) -> Object:
    """Return a whole answer as OpenAI's chat has it."""
    choices = [
        {
            "message": _spoken(mapping(mapping(item).get("message"))),
            "finish_reason": mapping(item).get("finish_reason"),
        }
        for item in sequence(said.get("outputs"))
    ]
    return {**said, "choices": choices, "usage": usage_of(mapping(said.get("usage")))}


def _joined(message: Object) -> Object:
    return {
        name: "".join(value) if name in ("content", "reasoning_content") else value
        for name, value in message.items()
    }


def _spoken(message: Object) -> Object:
    """Return a message of an answer, without what is empty."""
    calls = [_call(mapping(item)) for item in sequence(message.get("tool_calls"))]
    fields = {name: text(message.get(name)) for name in ("role", "content", "reasoning_content")}
    return without_none({**fields, "tool_calls": calls or None})


def _message(item: Any) -> Object:
    message = mapping(item)
    content = [_content(mapping(one)) for one in sequence(message.get("content"))]
    plain = content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content
    calls = [_call(mapping(one)) for one in sequence(message.get("tool_calls"))]
    kept = ("role", "name", "reasoning_content", "tool_call_id")
    fields = {name: text(message.get(name)) for name in kept}
    return without_none({**fields, "content": plain or None, "tool_calls": calls or None})


def _content(part: Object) -> Object:
    if "image_url" in part:
        image = mapping(part["image_url"])
        shown = without_none({"url": image.get("image_url"), "detail": text(image.get("detail"))})
        return {"type": "image_url", "image_url": shown}
    if "file" in part:
        file = mapping(part["file"])
        fields = {
            "file_id": text(file.get("file_id")),
            "filename": text(file.get("filename")),
            "file_url": text(file.get("url")),
            "file_data": text(file.get("data")),
        }
        return {"type": "file", "file": without_none(fields)}
    return {"type": "text", "text": part.get("text", "")}


def _call(call: Object) -> Object:
    """Return a call of a tool; of one that runs at xAI, under its name there."""
    function = mapping(call.get("function"))
    name = text(function.get("name")) or str(call.get("type", ""))
    return {
        "id": call.get("id"),
        "type": "function",
        "function": {"name": name, "arguments": function.get("arguments", "")},
    }


def _tool(tool: Object) -> Object:
    kind = next(iter(tool), "function")
    fields = mapping(tool.get(kind))
    schema = fields.get("parameters")
    if isinstance(schema, str):
        fields = {**fields, "parameters": parsed_arguments(schema)}
    return {"type": kind, kind: fields}


def usage_of(usage: Object) -> Object:
    """Return the counts, where OpenAI's chat has them."""
    details = {
        "prompt_tokens_details": {"cached_tokens": usage.get("cached_prompt_text_tokens")},
        "completion_tokens_details": {"reasoning_tokens": usage.get("reasoning_tokens")},
    }
    return {**usage, **details} if usage else {}


class XaiDeferred(XaiChat):
    """xAI's deferred chat over gRPC: ``…/StartDeferredCompletion``. The response is an id."""

    wire = "xai.deferred"


class XaiFetchedDeferred(XaiChat):
    """The response of a deferred chat of xAI: ``…/GetDeferredCompletion``. It counts the tokens."""

    wire = "xai.fetched_deferred"
    operation = GenAiOperationName.FETCH_RESPONSE
    answers = DEFERRED

    def unwrapped(self, body: bytes) -> bytes:
        """Return an object without fields: a request has an id."""
        return b"{}"

    def _body(self, said: list[Object]) -> Object:
        return answered(mapping(single(said).get("response")))
