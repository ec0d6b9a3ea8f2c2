"""OpenAI's Responses API over a WebSocket, ``…/responses``: each of its responses is a call.

Requests and events are those of ``POST …/responses``. A connection has lanes (``stream_id``), in
each of which one response follows the other. With ``previous_response_id`` the provider knows what was
said before: the input of a call is what was sent for it.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, cast

import msgspec

from playhead_genai.messages import to_json
from playhead_genai.providers.dialect import error_of
from playhead_genai.providers.openai.responses import OpenAIResponses
from playhead_genai.providers.openai.responses_fold import ResponseFold
from playhead_genai.providers.reading import Object, mapping, text, without_none
from playhead_genai.providers.realtime.calls import RealtimeCall, SessionMessage
from playhead_semconv import attributes as a

_SOME_OF: Final = frozenset(("model", "input", "previous_response_id", "conversation", "prompt"))
"""A request has at least one of these fields."""


class _Response(msgspec.Struct):
    call: RealtimeCall
    asked: Object
    """The request."""
    inputs: list[Any]
    """The items that are new to the provider."""
    fold: ResponseFold


class _Lane(msgspec.Struct):
    """Where one response follows the other."""

    waiting: deque[_Response]
    """Asked for, and not begun."""
    current: _Response | None = None
    """The last that has begun, until it has ended."""


class _Steer(msgspec.Struct):
    """Input for a response that goes on from one that was being given."""

    time_ns: int
    input: Any


class OpenAIResponsesFold:
    """Joins the messages of a connection into calls."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._responses: list[_Response] = []
        self._lanes: dict[str, _Lane] = {}
        self._begun: dict[str, _Response] = {}
        """By their ids."""
        self._steered: dict[str, list[_Steer]] = {}
        """By the ids of the responses from which it goes on."""
        self._trouble: tuple[str, str] = ("", "")
        """Type and message of an error of the connection."""
        self._troubled = 0
        """How many responses had been asked for when that error came."""

    def message(self, message: SessionMessage) -> None:
        """Add the next message."""
        value, at = message.value, message.time_ns
        if value is None:
            if not message.sent:
                self._malformed()
            return
        kind = text(value.get("type")) or ""
        if message.sent:
            self._sent(at, kind, value)
        elif kind == "error":
            self._failed(at, value)
        elif kind == "response.created":
            self._created(at, value)
        elif kind == "response.steer.failed":
            self._not_steered(mapping(value.get("steer")))
        elif kind.startswith("response."):
            self._continued(at, value)

    def calls(self) -> list[RealtimeCall]:
        """Return the calls, also of what was asked and never answered."""
        for one in self._responses[: self._troubled]:
            if one.call.ended_ns is None:
                one.call.fail(*self._trouble)
        return [self._call(one) for one in self._responses]

    def _sent(self, time_ns: int, kind: str, value: Object) -> None:
        if kind == "response.create" and _SOME_OF & value.keys():
            made = self._response(time_ns, value, _items(value.get("input")))
            self._lane(value).waiting.append(made)
        elif kind == "response.steer" and (before := text(value.get("previous_response_id"))):
            self._steered.setdefault(before, []).append(_Steer(time_ns, value.get("input")))

    def _response(self, time_ns: int, asked: Object, inputs: list[Any]) -> _Response:
        made = _Response(RealtimeCall(time_ns), asked, inputs, ResponseFold())
        self._responses.append(made)
        return made

    def _lane(self, value: Object) -> _Lane:
        return self._lanes.setdefault(text(value.get("stream_id")) or "", _Lane(deque()))

    def _created(self, time_ns: int, value: Object) -> None:
        """Start the pending request, or the continuation of a steered response."""
        lane, response = self._lane(value), mapping(value.get("response"))
        before = text(response.get("previous_response_id")) or ""
        steered = self._steered.pop(before, [])
        added = [item for one in steered for item in _items(one.input)]
        if lane.waiting and not (
            steered and lane.waiting[0].asked.get("previous_response_id") != before
        ):
            begun = lane.waiting.popleft()
            begun.inputs = added + begun.inputs
        elif steered:
            earlier = self._begun.get(before)
            settings = {} if earlier is None else earlier.asked
            asked = settings | {"previous_response_id": before}
            begun = self._response(steered[0].time_ns, asked, added)
        else:
            return
        lane.current = begun
        if identity := text(response.get("id")):
            self._begun[identity] = begun
        begun.call.first_ns = time_ns
        begun.fold.event("", value)

    def _continued(self, time_ns: int, value: Object) -> None:
        lane = self._lane(value)
        if lane.current is not None:
            lane.current.fold.event("", value)
            if lane.current.fold.ended(True):
                lane.current.call.ended_ns = time_ns
                lane.current = None

    def _failed(self, time_ns: int, value: Object) -> None:
        """An error is one of the events of a response, which have numbers, or about what was asked.

        An error that can be about neither is about the connection.
        """
        lane = self._lane(value)
        about = lane.current
        if lane.waiting and (about is None or "sequence_number" not in value):
            about = lane.waiting.popleft()
        if about is None:
            self._trouble = error_of({"error": value.get("error") or value})
            self._troubled = len(self._responses)
        elif about.call.ended_ns is None:  # an event that says so again may follow
            about.fold.event("", value)
            about.call.ended_ns = time_ns

    def _not_steered(self, steer: Object) -> None:
        waiting = self._steered.get(text(steer.get("previous_response_id")) or "", [])
        found = next((one for one in waiting if one.input == steer.get("input")), None)
        if found is not None:
            waiting.remove(found)

    def _malformed(self) -> None:
        for lane in self._lanes.values():
            if lane.current is not None:
                lane.current.call.malformed()

    def _call(self, one: _Response) -> RealtimeCall:
        dialect, asked, call = OpenAIResponses(), one.asked, one.call
        known = {a.GEN_AI_OPERATION_NAME: dialect.operation, a.GEN_AI_REQUEST_MODEL: text(self._model)}
        call.attributes = without_none(known) | dialect.parameters(asked)
        for name, found in (
            (a.GEN_AI_INPUT_MESSAGES, [dialect.message(item) for item in one.inputs]),
            (a.GEN_AI_SYSTEM_INSTRUCTIONS, dialect.instructions(asked.get("instructions") or [])),
            (a.GEN_AI_TOOL_DEFINITIONS, dialect.tools(asked.get("tools"))),
        ):
            if found:
                call.attributes[name] = to_json(found)
        body = one.fold.body()
        kind, message = error_of(body)
        if kind or message or body.get("status") == "failed":
            call.fail(kind or "failed", message)
        call.add(dialect.answer(body, asked, not one.fold.ended(True)))
        return call


def _items(value: Any) -> list[Any]:
    """Return the items of an input; a text is one."""
    if isinstance(value, list):
        return cast(list[Any], value)
    return [] if value is None else [value]
