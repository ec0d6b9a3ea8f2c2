"""Renders an answer in the wire form that an SDK expects, streamed if the request wants it so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from playhead_genai.providers import WireResponse
from playhead_genai.providers.catalogue import path_of
from playhead_genai.providers.encodings import decoded_request
from playhead_genai.providers.reading import Object, mapping, parse
from playhead_genai.rebuilding.calls import ModelAnswer

Event: TypeAlias = tuple[str, Object]
"""Name (may be empty) and value of an event of a stream."""


class NotRebuilt(Exception):
    """An answer cannot be rebuilt; the text says why."""


@dataclass(slots=True)
class Rendering:
    """One answer being rendered, with notes on what the span did not say."""

    answer: ModelAnswer
    request: Object
    """Body of the request that is answered."""
    url: str
    made_up: list[str] = field(default_factory=list[str])
    """What the answer needs and the span does not say."""
    left_out: list[str] = field(default_factory=list[str])
    """What the span says and the wire has no form for."""

    def id(self, prefix: str) -> str:
        """Return the id of the response; a fixed one if the span does not say it."""
        return self.answer.id or self._make_up("response id", f"{prefix}rebuilt")

    def model(self) -> str:
        """Return the model that answered, else the one that is asked now."""
        return self.answer.model or self._make_up("model", str(self.request.get("model") or ""))

    def call_id(self, id: str | None, number: int, prefix: str = "call_") -> str:
        """Return the id of a tool call; one from its number if the span does not say it."""
        return id or self._make_up("ids of tool calls", f"{prefix}rebuilt_{number}")

    def finish_reason(self, number: int, words: Mapping[str, str], *, called: bool) -> str:
        """Return the finish reason of a choice in the wire's ``words``; by its content if unsaid."""
        reasons = self.answer.finish_reasons
        if number < len(reasons):
            return words.get(reasons[number], reasons[number])
        return self._make_up("finish reason", words["tool_call" if called else "stop"])

    def arguments(self, value: Any) -> str:
        """Return the arguments of a tool call as text; the span may have their values alone."""
        text = arguments_text(value)
        return text if isinstance(value, str) else self._make_up("spelling of arguments", text)

    def leave_out(self, what: str) -> None:
        """Note a part that has no form on this wire."""
        if what not in self.left_out:
            self.left_out.append(what)

    def _make_up(self, what: str, value: str) -> str:
        if what not in self.made_up:
            self.made_up.append(what)
        return value


Body: TypeAlias = Callable[[Rendering], Object]
Stream: TypeAlias = Callable[[Rendering, Object], Iterable[Event]]


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """How answers look on one wire."""

    body: Body
    stream: Stream | None = None
    """Cuts a body into events; None: this wire has no streams."""
    is_streamed: Callable[[Object, str], bool] = lambda request, url: request.get("stream") is True
    done: bytes = b""
    """What follows the last event."""


def arguments_text(value: Any) -> str:
    """Return the arguments of a tool call as the JSON text that models write."""
    if isinstance(value, str):
        return value
    return json.dumps({} if value is None else value, ensure_ascii=False, separators=(",", ":"))


def server_sent(events: Iterable[Event], *, named: bool) -> Iterable[bytes]:
    """Return events as server-sent events. ``named``: with their names."""
    for name, value in events:
        head = f"event: {name}\n".encode() if named and name else b""
        yield head + b"data: " + msgspec.json.encode(value) + b"\n\n"


def render(
    form: AnswerForm, answer: ModelAnswer, body: bytes, url: str
) -> tuple[WireResponse, Rendering]:
    """Render ``answer`` for a request with this body and URL. `NotRebuilt`."""
    try:
        request = mapping(parse(decoded_request(body)))
    except (ValueError, RecursionError) as error:
        raise NotRebuilt(f"the request cannot be read: {error}") from None
    rendering = Rendering(answer, request, url)
    if answer.error_type and not answer.messages and not answer.vectors:
        return _failed(answer), rendering
    whole = form.body(rendering)
    if not form.is_streamed(request, url):
        headers = [("content-type", "application/json")]
        return WireResponse(200, headers, [msgspec.json.encode(whole)], True), rendering
    if form.stream is None:
        raise NotRebuilt("a stream of this wire cannot be rebuilt")
    events = form.stream(rendering, whole)
    if "alt=sse" not in url and path_of(url).endswith(":streamGenerateContent"):
        values = [value for _, value in events]
        data = [msgspec.json.encode(values)]
        return WireResponse(200, [("content-type", "application/json")], data, True), rendering
    chunks = list(server_sent(events, named=not form.done))
    if form.done:
        chunks.append(form.done)
    headers = [("content-type", "text/event-stream; charset=utf-8")]
    return WireResponse(200, headers, chunks, True), rendering


STATUSES: Final = {
    "BadRequestError": 400,
    "AuthenticationError": 401,
    "PermissionDeniedError": 403,
    "NotFoundError": 404,
    "ConflictError": 409,
    "UnprocessableEntityError": 422,
    "RateLimitError": 429,
    "InternalServerError": 500,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_request_error": 400,
    "authentication_error": 401,
    "not_found_error": 404,
    "overloaded_error": 529,
    "api_error": 500,
}
"""Values of ``error.type`` that come with one HTTP status: classes of SDKs, words of providers."""


def _failed(answer: ModelAnswer) -> WireResponse:
    name = answer.error_type.rpartition(".")[2]
    said = int(name) if name.isdecimal() and len(name) == 3 else STATUSES.get(name, 0)
    status = answer.error_status or said
    if not 400 <= status < 600:
        raise NotRebuilt(f"the call failed with {answer.error_type}, which is no answer of a provider")
    error = {"type": name, "code": None, "message": answer.error_message or name, "param": None}
    body = msgspec.json.encode({"type": "error", "error": error})
    headers = [("content-type", "application/json"), ("x-should-retry", "false")]
    return WireResponse(status, headers, [body], True)
