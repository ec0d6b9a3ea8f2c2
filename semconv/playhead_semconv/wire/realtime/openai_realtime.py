"""OpenAI's Realtime API: a session over a WebSocket, ``…/realtime``. Each of its responses is a call."""

from __future__ import annotations

from typing import Any

import msgspec

from playhead_semconv import attributes as a
from playhead_semconv.facts import Value
from playhead_semconv.genai.messages import to_json
from playhead_semconv.values import GenAiOperationName, GenAiOutputType
from playhead_semconv.wire.dialect import error_of, tokens
from playhead_semconv.wire.openai.response_items import item_message
from playhead_semconv.wire.openai.responses import OpenAIResponses
from playhead_semconv.wire.openai.responses_fold import ResponseFold
from playhead_semconv.wire.reading import (
    Object,
    given,
    integer,
    mapping,
    number,
    rest,
    sequence,
    strings,
    text,
)
from playhead_semconv.wire.realtime.calls import RealtimeCall, SessionMessage

_USAGE = (
    (a.GEN_AI_USAGE_INPUT_TOKENS, "", "input_tokens"),
    (a.GEN_AI_USAGE_OUTPUT_TOKENS, "", "output_tokens"),
    (a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, "input_token_details", "cached_tokens"),
    (a.GEN_AI_USAGE_TEXT_INPUT_TOKENS, "input_token_details", "text_tokens"),
    (a.GEN_AI_USAGE_IMAGE_INPUT_TOKENS, "input_token_details", "image_tokens"),
    (a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS, "input_token_details", "audio_tokens"),
    (a.GEN_AI_USAGE_TEXT_OUTPUT_TOKENS, "output_token_details", "text_tokens"),
    (a.GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS, "output_token_details", "audio_tokens"),
)
_SPOKEN = ("audio", "output_audio", "input_audio")
"""Types of parts that are audio."""
_RENAMED = (
    ("response.output_audio_transcript.", "response.output_text."),
    ("response.audio_transcript.", "response.output_text."),
    ("response.text.", "response.output_text."),
)
"""What was said aloud, and older names → the name in the Responses API."""


class _Response(msgspec.Struct):
    call: RealtimeCall
    session: Object
    """As it was when the response began."""
    asked: Object
    """What the program asked for this response alone."""
    inputs: list[str]
    """Ids of the items that it answers."""
    fold: ResponseFold
    body: Object | None = None
    """As the provider sent it at the end."""


class OpenAIRealtimeFold:
    """Joins the messages of a connection into calls."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._begun = False
        self._session: Object = {}
        self._items: dict[str, Object] = {}
        self._new: list[str] = []
        """Ids of items that no response has answered yet."""
        self._asked: list[tuple[int, Object]] = []
        """Responses that the program asked for and that have not begun: when, and how."""
        self._responses: dict[str, _Response] = {}

    def message(self, message: SessionMessage) -> None:
        """Add the next message."""
        value, kind = message.value, text(message.value.get("type")) or ""
        if message.sent:
            if kind == "response.create":
                self._asked.append((message.time_ns, mapping(value.get("response"))))
        elif kind in ("session.created", "session.updated"):
            self._begun = True
            self._session = self._session | mapping(value.get("session"))
        elif kind == "conversation.item.input_audio_transcription.completed":
            self._transcribed(value)
        elif kind.startswith("conversation.item."):
            self._item(mapping(value.get("item")))
        elif kind == "response.created":
            self._created(message.time_ns, mapping(value.get("response")))
        elif kind.startswith("response."):
            self._continued(message.time_ns, kind, value)
        elif kind == "error" and self._asked:
            at, asked = self._asked.pop(0)
            found = self._response(at, asked, f"error {len(self._responses)}")
            found.body, found.call.ended_ns = rest(value, "type"), message.time_ns

    def calls(self) -> list[RealtimeCall]:
        """Return the calls; none if no session was begun."""
        return [self._call(one) for one in self._responses.values()] if self._begun else []

    def _item(self, item: Object) -> None:
        identity = text(item.get("id"))
        if identity is None:
            return
        answered = item.get("role") == "assistant" or item.get("type") == "function_call"
        if identity not in self._items and not answered:
            self._new.append(identity)
        self._items[identity] = item

    def _transcribed(self, value: Object) -> None:
        item = self._items.get(text(value.get("item_id")) or "")
        parts = sequence(item.get("content")) if item is not None else []
        at = integer(value.get("content_index")) or 0
        if item is not None and 0 <= at < len(parts):
            said = mapping(parts[at]) | {"transcript": value.get("transcript")}
            parts = [*parts[:at], said, *parts[at + 1 :]]
            self._items[str(value["item_id"])] = item | {"content": parts}

    def _created(self, time_ns: int, response: Object) -> None:
        at, asked = self._asked.pop(0) if self._asked else (time_ns, {})
        identity = text(response.get("id")) or f"response {len(self._responses)}"
        self._response(at, asked, identity)

    def _response(self, at: int, asked: Object, identity: str) -> _Response:
        made = _Response(RealtimeCall(at), self._session, asked, self._new, ResponseFold())
        self._new = []
        self._responses[identity] = made
        return made

    def _continued(self, time_ns: int, kind: str, value: Object) -> None:
        identity = text(value.get("response_id")) or text(mapping(value.get("response")).get("id"))
        found = self._responses.get(identity or "")
        if found is None:
            return
        if kind == "response.done":
            found.body, found.call.ended_ns = mapping(value.get("response")), time_ns
            return
        if kind.endswith(".delta") and found.call.first_ns is None:
            found.call.first_ns = time_ns
        for before, after in _RENAMED:
            if kind.startswith(before):
                said = rest(value, "type", "transcript") | {"type": after + kind[len(before) :]}
                value = (
                    said | given({"text": value.get("transcript")}) | given({"text": value.get("text")})
                )
                break
        if "audio.delta" not in kind:
            found.fold.event("", value)

    def _call(self, one: _Response) -> RealtimeCall:
        body = one.fold.body() if one.body is None else one.body
        asked = one.session | one.asked
        call = one.call
        call.attributes = self._asked_for(asked) | given(
            {a.GEN_AI_CONVERSATION_ID: text(body.get("conversation_id")) or text(asked.get("id"))}
        )
        inputs = [item_message(_readable(self._items[identity])) for identity in one.inputs]
        if inputs:
            call.attributes[a.GEN_AI_INPUT_MESSAGES] = to_json(inputs)
        details = mapping(body.get("status_details"))
        call.error_type, call.error_message = error_of(body if "error" in body else details)
        read = body | {
            "output": [_readable(mapping(item)) for item in sequence(body.get("output"))],
            "incomplete_details": {"reason": details.get("reason")},
        }
        said = OpenAIResponses().answer(rest(read, "usage", "conversation_id"), {}, one.body is None)
        call.add(said)
        call.attributes |= tokens(mapping(body.get("usage")), _USAGE)
        return call

    def _asked_for(self, asked: Object) -> dict[str, Value]:
        """Return attributes for what a response was asked with."""
        aloud = strings(asked.get("output_modalities")) or strings(asked.get("modalities")) or []
        limit = asked.get("max_output_tokens", asked.get("max_response_output_tokens"))
        found: dict[str, Value] = given(
            {
                a.GEN_AI_OPERATION_NAME: GenAiOperationName.CHAT,
                a.GEN_AI_REQUEST_MODEL: self._model or text(asked.get("model")),
                a.GEN_AI_RESPONSE_MODEL: text(asked.get("model")),
                a.GEN_AI_REQUEST_TEMPERATURE: number(asked.get("temperature")),
                a.GEN_AI_REQUEST_MAX_TOKENS: integer(limit),
                a.GEN_AI_OUTPUT_TYPE: GenAiOutputType.SPEECH if "audio" in aloud else None,
            }
        )
        dialect = OpenAIResponses()
        if instructions := text(asked.get("instructions")):
            found[a.GEN_AI_SYSTEM_INSTRUCTIONS] = to_json(dialect.instructions(instructions))
        if tools := dialect.tools(asked.get("tools")):
            found[a.GEN_AI_TOOL_DEFINITIONS] = to_json(tools)
        return found


def _readable(item: Object) -> Object:
    """Return an item whose spoken parts are the texts that they were transcribed to."""
    if "content" not in item:
        return item
    return item | {"content": [_said(part) for part in sequence(item.get("content"))]}


def _said(part: Any) -> Any:
    value = mapping(part)
    if value.get("type") not in _SPOKEN:
        return part
    said = text(value.get("transcript")) or text(value.get("text"))
    return {"type": "text", "text": said} if said else rest(value, "audio", "transcript", "text")
