"""Derives a span's attributes from the bytes of its exchange: the same code for agent and receiver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from playhead_semconv import attributes as a
from playhead_semconv.facts import Value
from playhead_semconv.genai.messages import called_in, to_json
from playhead_semconv.wire.anthropic.messages import AnthropicMessages
from playhead_semconv.wire.dialect import Dialect, Fold, error_of
from playhead_semconv.wire.encodings import decode_body, header
from playhead_semconv.wire.openai.chat import OpenAIChat
from playhead_semconv.wire.openai.embeddings import OpenAIEmbeddings
from playhead_semconv.wire.openai.responses import OpenAIResponses
from playhead_semconv.wire.prefix import PrefixCache
from playhead_semconv.wire.reading import Object, parse, text
from playhead_semconv.wire.request import Request, read_request
from playhead_semconv.wire.sse import SseParser

CONTENT_ATTRIBUTES = (
    a.GEN_AI_INPUT_MESSAGES,
    a.GEN_AI_OUTPUT_MESSAGES,
    a.GEN_AI_SYSTEM_INSTRUCTIONS,
    a.GEN_AI_TOOL_DEFINITIONS,
)
"""Attributes that a span may leave out, because they can be derived from its exchange."""

DIALECTS: dict[str, Dialect] = {
    dialect.wire: dialect
    for dialect in (OpenAIChat(), OpenAIResponses(), OpenAIEmbeddings(), AnthropicMessages())
}
"""Dialects by their wire name."""

_SUFFIXES = {
    "/chat/completions": OpenAIChat.wire,
    "/responses": OpenAIResponses.wire,
    "/embeddings": OpenAIEmbeddings.wire,
    "/v1/messages": AnthropicMessages.wire,
}


class WireResponse(msgspec.Struct):
    """A response as received over the wire, possibly incomplete."""

    status_code: int | None = None
    """None: no response was received."""
    headers: Sequence[tuple[str, str]] = ()
    chunks: Sequence[bytes] = ()
    """Pieces of the body, still content-encoded."""
    complete: bool = False
    """Whether the body was received completely, as far as HTTP can tell."""


class Derived(msgspec.Struct):
    """What can be derived from an exchange."""

    operation: str
    """Value of ``gen_ai.operation.name``."""
    request_model: str = ""
    attributes: dict[str, Value] = {}
    """Attributes of the span. The four content attributes are JSON text."""
    streamed: bool = False
    """Whether the response is a stream of events."""
    content_complete: bool = False
    """Whether the content is complete: its last event was received, or its body is JSON."""
    error_type: str = ""
    """Value of ``error.type``: the provider's code or type, else the status; empty: no error."""
    error_message: str = ""
    malformed: bool = False
    """Whether the response violates its format: an event, or a complete body, is not JSON."""
    problem: str = ""
    """What could not be read, and why; several problems are joined by ``; ``."""


def wire_of(method: str, url: str) -> str | None:
    """Return the wire name for a request's method and URL or path; None if it is no known dialect."""
    if method.upper() != "POST":
        return None
    path = url.partition("?")[0].partition("#")[0].rstrip("/")
    return next((wire for suffix, wire in _SUFFIXES.items() if path.endswith(suffix)), None)


def derive(
    wire: str, request_body: bytes, response: WireResponse, cache: PrefixCache | None = None
) -> Derived:
    """Derive attributes for an exchange in the dialect ``wire`` from any bytes. KeyError: unknown one.

    Nothing else is raised: ``problem`` says what cannot be read, and the rest is filled in.
    """
    dialect = DIALECTS[wire]
    try:
        return _derive(dialect, request_body, response, cache)
    except RecursionError:  # decoders accept deeper nesting than encoders
        attributes: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: dialect.operation}
        return Derived(dialect.operation, attributes=attributes, problem="too deeply nested")


def _derive(
    dialect: Dialect, request_body: bytes, response: WireResponse, cache: PrefixCache | None
) -> Derived:
    request = read_request(dialect, request_body, cache)
    derived = Derived(
        operation=dialect.operation,
        request_model=text(request.fields.get("model")) or "",
        attributes={a.GEN_AI_OPERATION_NAME: dialect.operation} | request.attributes,
    )
    problems = list(request.problems)
    if response.status_code is None:
        problems.append("no response")
    else:
        problems += _answer(dialect, request, response, derived)
    derived.problem = "; ".join(problem for problem in problems if problem)
    return derived


def _answer(dialect: Dialect, request: Request, response: WireResponse, derived: Derived) -> list[str]:
    """Add what the response says to ``derived``; returns problems."""
    data, problem = decode_body(response.headers, response.chunks)
    whole = response.complete and not problem
    problems = [problem]
    derived.streamed = _is_stream(response, data)
    if derived.streamed:
        fold = dialect.fold()
        broken = _events(fold, data)
        derived.malformed = bool(broken)
        problems += broken
        body: Any = fold.body()
        derived.content_complete = fold.ended(whole)
        cut_short = not derived.content_complete
        if cut_short and not any(error_of(body)):
            problems.append("the stream ended early")
    else:
        body, cut_short = None, False
        try:
            body = parse(data)
            derived.content_complete = True
        except (ValueError, RecursionError) as error:
            derived.malformed = whole
            problems.append(f"response body: {error}" if whole else "the response body ended early")
    fields = cast(Object, body) if isinstance(body, dict) else {}
    answer = dialect.answer(fields, request.fields, cut_short)
    derived.attributes |= answer.attributes
    if answer.finish_reasons:
        derived.attributes[a.GEN_AI_RESPONSE_FINISH_REASONS] = list[Any](answer.finish_reasons)
    if answer.messages:
        derived.attributes[a.GEN_AI_OUTPUT_MESSAGES] = to_json(answer.messages)
        called = called_in(answer.messages)
        if called:
            derived.attributes[a.PLAYHEAD_TOOL_CALLED] = list[Any](called)
    if derived.streamed:
        derived.attributes[a.GEN_AI_REQUEST_STREAM] = True
    kind, derived.error_message = error_of(body)
    status = response.status_code or 0
    failed = bool(kind or derived.error_message)
    derived.error_type = kind or (str(status) if status >= 400 else "_OTHER" if failed else "")
    return problems


def _is_stream(response: WireResponse, data: bytes) -> bool:
    media_type = header(response.headers, "content-type").lower()
    if media_type:
        return "text/event-stream" in media_type
    return data.lstrip(b"\xef\xbb\xbf\r\n").startswith((b"data:", b"event:", b":"))


def _events(fold: Fold, data: bytes) -> list[str]:
    """Feed a stream's events to ``fold``; returns problems.

    An event that is not a JSON object is skipped.
    """
    parser = SseParser()
    events = parser.feed(data)
    last = parser.close()
    problems: list[str] = []
    for number, event in enumerate([*events, last] if last else events):
        if event.data.strip() == b"[DONE]":
            fold.done()
            continue
        try:
            value = parse(event.data)
        except (ValueError, RecursionError) as error:
            if event is not last:
                problems.append(f"event {number} of the stream: {error}")
            continue
        if isinstance(value, dict):
            fold.event(event.name, cast(Object, value))
        else:
            problems.append(f"event {number} of the stream is no object")
    return problems
