"""OpenAI's Realtime API: a session over a WebSocket, ``…/realtime``. Each of its responses is a call."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from playhead_core.facts import Value
from playhead_genai.messages import to_json
from playhead_genai.providers.dialect import error_of, tokens
from playhead_genai.providers.openai.response_items import item_message
from playhead_genai.providers.openai.responses import OpenAIResponses
from playhead_genai.providers.openai.responses_fold import ResponseFold
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
from playhead_genai.providers.realtime.calls import RealtimeCall, SessionMessage
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiOutputType

USAGE = (
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


_ANSWERS = {
    "session.updated": "session.update",
    "conversation.item.added": "conversation.item.create",
    "conversation.item.created": "conversation.item.create",
    "conversation.item.deleted": "conversation.item.delete",
    "conversation.item.truncated": "conversation.item.truncate",
    "conversation.item.retrieved": "conversation.item.retrieve",
    "input_audio_buffer.committed": "input_audio_buffer.commit",
    "input_audio_buffer.cleared": "input_audio_buffer.clear",
    "response.created": "response.create",
    "response.done": "response.cancel",
}
"""Event of the provider → event of the program that it answers. Others are not answered."""
_ANSWERED = frozenset(_ANSWERS.values())


class _Event(NamedTuple):
    """An event of the program that the provider has not answered yet."""

    time_ns: int
    kind: str
    identity: str | None
    asked: Object
    """What it asks for this response alone; the item that it creates."""


class _Response(msgspec.Struct):
    call: RealtimeCall
    session: Object
    """As it was when the response began."""
    asked: Object
    """What the program asked for this response alone."""
    inputs: list[str | Object]
    """The items that it answers, or their ids."""
    fold: ResponseFold
    body: Object | None = None
    """As the provider sent it at the end."""
    trouble: tuple[str, str] = ("", "")
    """Type and message of an error of the session while it was being given."""


class OpenAIRealtimeFold:
    """Joins the messages of a connection into calls."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._begun = False
        self._session: Object = {}
        self._items: dict[str, Object] = {}
        self._new: list[str] = []
        """Ids of items that no response has answered yet."""
        self._waiting: list[_Event] = []
        self._responses: dict[str, _Response] = {}

    def message(self, message: SessionMessage) -> None:
        """Add the next message."""
        value, at = message.value, message.time_ns
        if message.sent:
            self._sent(at, value or {})
        elif value is None:
            for one in self._open():
                one.call.malformed()
        else:
            self._came(at, text(value.get("type")) or "", value)

    def calls(self) -> list[RealtimeCall]:
        """Return the calls, also of what was asked and never answered; none if no session was begun."""
        if not self._begun:
            return []
        for place, event in enumerate(self._waiting):
            identity = f"unanswered {place}"
            if event.kind == "conversation.item.create":
                self._items[identity] = event.asked
                self._new.append(identity)
            elif event.kind == "response.create":
                self._response(event.time_ns, event.asked, identity)
        self._waiting = []
        return [self._call(one) for one in self._responses.values()]

    def _sent(self, time_ns: int, value: Object) -> None:
        kind = text(value.get("type")) or ""
        if kind in _ANSWERED:
            asked = mapping(value.get("response")) or mapping(value.get("item"))
            self._waiting.append(_Event(time_ns, kind, text(value.get("event_id")), asked))

    def _came(self, time_ns: int, kind: str, value: Object) -> None:
        if kind == "error":
            self._failed(time_ns, rest(value, "type"))
            return
        answered = self._answered(kind, value)
        if kind in ("session.created", "session.updated"):
            self._begun = True
            self._session = self._session | mapping(value.get("session"))
        elif kind == "conversation.item.input_audio_transcription.completed":
            self._transcribed(value)
        elif kind == "conversation.item.deleted":
            self._new = [one for one in self._new if one != value.get("item_id")]
        elif kind.startswith("conversation.item."):
            self._item(mapping(value.get("item")))
        elif kind == "response.created":
            self._created(time_ns, answered, value)
        elif kind.startswith("response."):
            self._continued(time_ns, kind, value)

    def _answered(self, kind: str, value: Object) -> _Event | None:
        """Return the event of the program that this one answers, which then waits no more."""
        asked = _ANSWERS.get(kind)
        if kind == "response.done" and mapping(value.get("response")).get("status") != "cancelled":
            return None  # it had ended before the program's wish to cancel it came: an error follows
        if kind.startswith("conversation.item.") and _is_answer(mapping(value.get("item"))):
            return None
        found = next((event for event in self._waiting if event.kind == asked), None)
        if found is not None:
            self._waiting.remove(found)
        return found

    def _failed(self, time_ns: int, body: Object) -> None:
        """An error is about the event that it names, else about the one that has waited longest.

        If there is no such event, it is about the session, and about what is being answered.
        """
        error = mapping(body.get("error"))
        self._begun = self._begun or bool(error)
        named = text(error.get("event_id"))
        about = [event for event in self._waiting if named is None or event.identity == named]
        if not about:
            for one in self._open():
                one.trouble = error_of(body)
            return
        self._waiting.remove(about[0])
        if about[0].kind == "response.create":
            identity = f"error {len(self._responses)}"
            found = self._response(about[0].time_ns, about[0].asked, identity)
            found.body, found.call.ended_ns = body, time_ns

    def _open(self) -> list[_Response]:
        return [one for one in self._responses.values() if one.body is None]

    def _item(self, item: Object) -> None:
        identity = text(item.get("id"))
        if identity is None:
            return
        if identity not in self._items and not _is_answer(item):
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

    def _created(self, time_ns: int, answered: _Event | None, value: Object) -> None:
        at, asked = (time_ns, {}) if answered is None else (answered.time_ns, answered.asked)
        identity = text(mapping(value.get("response")).get("id")) or f"response {len(self._responses)}"
        self._response(at, asked, identity).fold.event("", value)

    def _response(self, at: int, asked: Object, identity: str) -> _Response:
        inputs: list[str | Object] = [*self._new]
        if "input" in asked:  # a context of its own: what is new waits for the next response
            inputs = [self._referred(mapping(item)) for item in sequence(asked["input"])]
        else:
            self._new = []
        made = _Response(RealtimeCall(at), self._session, asked, inputs, ResponseFold())
        self._responses[identity] = made
        return made

    def _referred(self, item: Object) -> str | Object:
        """Return the id of an item of the session that ``item`` refers to; else the item itself."""
        identity = text(item.get("id"))
        known = item.get("type") == "item_reference" and identity in self._items
        return identity if known and identity is not None else item

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
                    said
                    | without_none({"text": value.get("transcript")})
                    | without_none({"text": value.get("text")})
                )
                break
        if "audio.delta" not in kind:
            found.fold.event("", value)

    def _call(self, one: _Response) -> RealtimeCall:
        body = one.fold.body() if one.body is None else one.body
        asked = one.session | one.asked
        call = one.call
        call.attributes = self._asked_for(asked) | without_none(
            {a.GEN_AI_CONVERSATION_ID: text(body.get("conversation_id")) or text(asked.get("id"))}
        )
        items = [self._items[item] if isinstance(item, str) else item for item in one.inputs]
        if items:
            call.attributes[a.GEN_AI_INPUT_MESSAGES] = to_json(
                [item_message(_readable(item)) for item in items]
            )
        details = mapping(body.get("status_details"))
        said = error_of(body if "error" in body else details)
        kind, message = one.trouble if one.body is None else said
        if kind or body.get("status") == "failed":
            call.error_type, call.error_message = kind or "failed", message
        read = body | {
            "output": [_readable(mapping(item)) for item in sequence(body.get("output"))],
            "incomplete_details": {"reason": details.get("reason")},
        }
        if body.get("status") == "cancelled":  # by the program or by the user, for whom it is no error
            reason = text(details.get("reason")) or "cancelled"
            read |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
        read = rest(read, "usage", "conversation_id")
        call.add(OpenAIResponses().answer(read, {}, one.body is None))
        call.attributes |= tokens(mapping(body.get("usage")), USAGE)
        return call

    def _asked_for(self, asked: Object) -> dict[str, Value]:
        """Return attributes for what a response was asked with."""
        aloud = strings(asked.get("output_modalities")) or strings(asked.get("modalities")) or []
        limit = asked.get("max_output_tokens", asked.get("max_response_output_tokens"))
        found: dict[str, Value] = without_none(
            {
                a.GEN_AI_OPERATION_NAME: GenAiOperationName.CHAT,
                a.GEN_AI_REQUEST_MODEL: self._model or text(asked.get("model")),
                a.GEN_AI_RESPONSE_MODEL: text(asked.get("model")),
                a.GEN_AI_REQUEST_TEMPERATURE: number(asked.get("temperature")),
                a.GEN_AI_REQUEST_MAX_TOKENS: integer(limit),
                a.GEN_AI_REQUEST_REASONING_LEVEL: text(mapping(asked.get("reasoning")).get("effort")),
                a.GEN_AI_OUTPUT_TYPE: GenAiOutputType.SPEECH if "audio" in aloud else None,
            }
        )
        dialect = OpenAIResponses()
        if instructions := text(asked.get("instructions")):
            found[a.GEN_AI_SYSTEM_INSTRUCTIONS] = to_json(dialect.instructions(instructions))
        if tools := dialect.tools(asked.get("tools")):
            found[a.GEN_AI_TOOL_DEFINITIONS] = to_json(tools)
        return found


def _is_answer(item: Object) -> bool:
    return item.get("role") == "assistant" or item.get("type") == "function_call"


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
