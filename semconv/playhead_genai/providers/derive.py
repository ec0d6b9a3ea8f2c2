"""Derives a span's attributes from the bytes of its exchange: the same code for agent and receiver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from playhead_core.facts import Value
from playhead_core.untrusted.shown_text import whole_text
from playhead_genai.messages import called_in, to_json
from playhead_genai.model_providers import provider_of_response
from playhead_genai.providers.catalogue import BODILESS, DIALECTS, model_in, path_of
from playhead_genai.providers.dialect import (
    Dialect,
    Fold,
    PartlyRead,
    error_of,
    refusal_of,
    usage_in_headers,
)
from playhead_genai.providers.encodings import decode_body, decoded_request, header
from playhead_genai.providers.framing import Events, array, reader_of
from playhead_genai.providers.prefix import PrefixCache
from playhead_genai.providers.reading import Object, parse, parse_piece, text
from playhead_genai.providers.request import Request, read_request
from playhead_semconv import attributes as a

CONTENT_ATTRIBUTES = (
    a.GEN_AI_INPUT_MESSAGES,
    a.GEN_AI_OUTPUT_MESSAGES,
    a.GEN_AI_SYSTEM_INSTRUCTIONS,
    a.GEN_AI_TOOL_DEFINITIONS,
)
"""Attributes that a span may leave out, because they can be derived from its exchange."""

ENDED_EARLY = "the response body ended early"


class WireResponse(msgspec.Struct):
    """A response as received over the wire, possibly incomplete."""

    status_code: int | None = None
    """None: no response was received."""
    headers: Sequence[tuple[str, str]] = ()
    chunks: Sequence[bytes] = ()
    """Pieces of the body, still content-encoded."""
    complete: bool = False
    """Whether the body was received completely, as far as HTTP can tell."""
    error: tuple[str, str] = ("", "")
    """Type and message of an error that the protocol below tells, as that of gRPC does."""


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
    provider: str = ""
    """Value of ``gen_ai.provider.name`` as the answer, else the wire tells it; empty: neither does."""
    malformed: bool = False
    """Whether the response violates its format: an event, or a complete body, cannot be read."""
    problem: str = ""
    """What could not be read, and why; several problems are joined by ``; ``."""


def derive(
    wire: str,
    request_body: bytes,
    response: WireResponse,
    cache: PrefixCache | None = None,
    url: str = "",
) -> Derived:
    """Derive attributes for an exchange in the dialect ``wire`` from any bytes. KeyError: unknown one.

    ``url``: of the request, or its path; names the model where the body does not. Nothing else is
    raised: ``problem`` says what cannot be read, and the rest is filled in.
    """
    dialect = DIALECTS[wire]
    try:
        return _derive(dialect, request_body, response, cache, url)
    except RecursionError:  # decoders accept deeper nesting than encoders
        attributes: dict[str, Value] = {a.GEN_AI_OPERATION_NAME: dialect.operation}
        return Derived(dialect.operation, attributes=attributes, problem="too deeply nested")


def _derive(
    dialect: Dialect, request_body: bytes, response: WireResponse, cache: PrefixCache | None, url: str
) -> Derived:
    if dialect.wire in BODILESS:
        request_body = request_body or b"{}"
    request_body = decoded_request(request_body)
    request = read_request(dialect, dialect.unwrapped(request_body), cache)
    derived = Derived(
        operation=dialect.operation,
        provider=dialect.provider,
        request_model=text(request.fields.get("model")) or model_in(url),
        attributes={a.GEN_AI_OPERATION_NAME: dialect.operation} | request.attributes,
    )
    problems = list(request.problems)
    if response.status_code is None:
        problems.append("no response")
    else:
        problems += _answer(dialect, request, response, derived, url)
    derived.problem = "; ".join(problem for problem in problems if problem)
    return derived


def _answer(
    dialect: Dialect, request: Request, response: WireResponse, derived: Derived, url: str
) -> list[str]:
    """Add what the response says to ``derived``; returns problems."""
    data, problem = decode_body(response.headers, response.chunks)
    whole = response.complete and not problem
    problems = [problem]
    read = reader_of(response.headers, data)
    derived.streamed = read is not None and (read is not array or "stream" in path_of(url))
    if read is not None:
        fold = dialect.fold()
        broken, hanging, cut = _events(fold, read(data))
        derived.malformed = bool(broken)
        problems += broken
        body: Any = whole_text(fold.body()) if cut else fold.body()
        derived.content_complete = fold.ended(whole and not hanging)
        cut_short = not derived.content_complete
        if cut_short and not any(error_of(body)):
            problems.append("the stream ended early")
    else:
        cut_short = False
        refused = (response.status_code or 0) >= 400
        kind = header(response.headers, "content-type").lower()
        try:
            body = None if refused else dialect.media(kind, data)
            derived.content_complete = whole and body is not None
            cut_short = body is not None and not whole
            if cut_short:
                problems.append(ENDED_EARLY)
            if body is None:
                body = parse(data)
                derived.content_complete = True
        except PartlyRead as stopped:
            body = stopped.body
            derived.malformed = True
            problems.append(str(stopped))
        except (ValueError, RecursionError) as error:
            body = None
            derived.malformed = whole
            problems.append(f"response body: {error}" if whole else ENDED_EARLY)
    fields = cast(Object, body) if isinstance(body, dict) else {}
    answer = dialect.answer(fields, request.fields, cut_short)
    derived.attributes |= usage_in_headers(response.headers) | answer.attributes
    if answer.finish_reasons:
        derived.attributes[a.GEN_AI_RESPONSE_FINISH_REASONS] = list[Any](answer.finish_reasons)
    if answer.messages:
        derived.attributes[a.GEN_AI_OUTPUT_MESSAGES] = to_json(answer.messages)
        called = called_in(answer.messages)
        if called:
            derived.attributes[a.PLAYHEAD_TOOL_CALLED] = list[Any](called)
    derived.streamed = derived.streamed or answer.attributes.get(a.GEN_AI_REQUEST_STREAM) is True
    if derived.streamed:
        derived.attributes[a.GEN_AI_REQUEST_STREAM] = True
    derived.provider = provider_of_response(response.headers, fields) or derived.provider
    kind, derived.error_message = response.error if any(response.error) else error_of(body)
    status = response.status_code or 0
    if status >= 400 and not kind and not derived.error_message:
        kind, derived.error_message = refusal_of(body, response.headers)
    failed = bool(kind or derived.error_message)
    derived.error_type = kind or (str(status) if status >= 400 else "_OTHER" if failed else "")
    return problems


def _events(fold: Fold, events: Events) -> tuple[list[str], bool, bool]:
    """Feed a stream's events to ``fold``.

    Returns problems, whether the last event is unfinished, and whether there are halves of characters.

    An event that is not a JSON object is skipped.
    """
    problems: list[str] = []
    last, hanging, cut = events.unfinished, False, False
    for number, event in enumerate([*events.whole, last] if last else events.whole):
        if event.data.strip() == b"[DONE]":
            fold.done()
            continue
        try:
            value, halves = parse_piece(event.data)
            cut = cut or halves
        except (ValueError, RecursionError) as error:
            if event is last:
                hanging = True
            else:
                problems.append(f"event {number} of the stream: {error}")
            continue
        if isinstance(value, dict):
            fold.event(event.name, cast(Object, value))
        else:
            problems.append(f"event {number} of the stream is no object")
    return [*problems, events.problem] if events.problem else problems, hanging, cut
