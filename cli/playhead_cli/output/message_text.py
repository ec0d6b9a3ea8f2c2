"""The response of a step in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from playhead_core.errors import TapeError
from playhead_genai.messages import read_output_messages
from playhead_genai.providers import DIALECTS, derive, wire_of
from playhead_genai.providers.encodings import decode_body
from playhead_genai.providers.xai.grpc import request_line
from playhead_genai.readable_text import text_of, text_of_messages
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_replay import RecordedExchange, Step

LARGEST_BYTES = 1 << 20
"""Bodies above this size are not read for one line."""


def answer_of(step: Step, exchanges: Sequence[RecordedExchange]) -> str:
    """Return the response of a step: text and tool calls of a model, result of a tool, or body.

    Reads the answer alone, not the request: a history may be long.
    """
    at = step.span.attributes
    if a.GEN_AI_OUTPUT_MESSAGES in at:
        return _said(at[a.GEN_AI_OUTPUT_MESSAGES])
    if a.GEN_AI_TOOL_CALL_RESULT in at:
        return text_of(at[a.GEN_AI_TOOL_CALL_RESULT])
    if not exchanges:
        return ""
    last = exchanges[-1]
    try:
        if not step.span.operation:
            return body_text(last)
        method, url = request_line(last.key)
        wire = str(at.get(a.PLAYHEAD_WIRE) or wire_of(method, url) or "")
        if wire not in DIALECTS:
            return ""
        derived = derive(wire, b"", last.wire_response, url=url).attributes
        return _said(derived.get(a.GEN_AI_OUTPUT_MESSAGES, "[]"))
    except TapeError:
        return ""


def _said(messages: Any) -> str:
    try:
        return text_of_messages(read_output_messages(messages))
    except (ValueError, RecursionError):
        return ""


def body_text(exchange: RecordedExchange) -> str:
    """Return the body of an answer, if it is text and not large. `TapeError`."""
    if exchange.id.kind != "http" or sum(exchange.chunk_sizes) > LARGEST_BYTES:
        return ""
    data, _ = decode_body(exchange.response_headers, [exchange.response])
    return text_in(data) or ""


def text_in(data: bytes) -> str | None:
    """Return the text that bytes are; None if they are none."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
