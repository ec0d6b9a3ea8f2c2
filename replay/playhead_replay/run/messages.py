"""The messages of a call, typed: from its span, or derived from its exchange if the span lacks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from playhead_core.errors import TapeError
from playhead_genai.messages import (
    InputMessage,
    OutputMessage,
    Part,
    ToolDefinition,
    read_input_messages,
    read_output_messages,
    read_parts,
    read_tool_definitions,
)
from playhead_genai.other_conventions import attributes_in_our_words
from playhead_genai.providers import (
    CONTENT_ATTRIBUTES,
    DIALECTS,
    derive,
    recognised,
    wire_of,
)
from playhead_genai.providers.xai.grpc import request_line
from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.histories import GrowingHistory
from playhead_semconv import attributes as a


@dataclass(slots=True)
class Messages:
    """Input and output messages of a call."""

    system: list[Part] = field(default_factory=list[Part])
    input: list[InputMessage] = field(default_factory=list[InputMessage])
    output: list[OutputMessage] = field(default_factory=list[OutputMessage])
    tools: list[ToolDefinition] = field(default_factory=list[ToolDefinition])


READERS: dict[str, tuple[str, Any]] = {
    a.GEN_AI_SYSTEM_INSTRUCTIONS: ("system", read_parts),
    a.GEN_AI_INPUT_MESSAGES: ("input", read_input_messages),
    a.GEN_AI_OUTPUT_MESSAGES: ("output", read_output_messages),
    a.GEN_AI_TOOL_DEFINITIONS: ("tools", read_tool_definitions),
}

REFERENCES = {f"{name}_ref": name for name in CONTENT_ATTRIBUTES}
"""Attribute that refers to content elsewhere → attribute that would hold it."""


def messages_of(
    attributes: Mapping[str, Any],
    exchanges: Sequence[RecordedExchange],
    history: GrowingHistory | None = None,
) -> Messages:
    """The messages of a call with these span attributes and attempts.

    Content that the span left out, or lacks because the program died, is derived from the exchange that
    the span refers to, else from the last attempt. With a ``history``: without what the call before it
    sent.
    """
    if history is not None:
        history.begin()
        attributes = history.of_attributes(attributes)
    missing = _missing_in(attributes) if exchanges else ()
    if missing:
        told = a.GEN_AI_INPUT_MESSAGES in attributes
        exchange = _referred(attributes, exchanges)
        derived = derived_attributes(attributes, exchange, None if told else history)
        attributes = {**{name: derived[name] for name in missing if name in derived}, **attributes}
    return read_messages(attributes)


def _missing_in(attributes: Mapping[str, Any]) -> Sequence[str]:
    """Names of the content that is derived from an exchange."""
    said = attributes.get(a.PLAYHEAD_DERIVED)
    names = cast(list[Any], said if isinstance(said, list) else ())
    missing = [name for name in names if name in CONTENT_ATTRIBUTES]
    missing += [name for reference, name in REFERENCES.items() if reference in attributes]
    if missing or any(name in attributes for name in CONTENT_ATTRIBUTES):
        return missing
    return CONTENT_ATTRIBUTES


def read_messages(attributes: Mapping[str, Any]) -> Messages:
    """The messages in a span's attributes: JSON text, structured, or in a dialect's spelling.

    Anything else is left out.
    """
    if translated := attributes_in_our_words(attributes):
        attributes = {**translated, **attributes}
    found = Messages()
    for name, (place, read) in READERS.items():
        value = attributes.get(name)
        if value is not None:
            try:
                setattr(found, place, read(value))
            except (ValueError, RecursionError):
                continue
    return found


def derived_attributes(
    attributes: Mapping[str, Any], exchange: RecordedExchange, history: GrowingHistory | None = None
) -> dict[str, Any]:
    """Span attributes derived from an exchange; empty if its dialect or bytes are unknown."""
    method, url = request_line(exchange.key)
    try:
        request = exchange.request
        wire = attributes.get(a.PLAYHEAD_WIRE) or recognised(method, url, request)
        wire = str(wire or wire_of(method, url) or "")
        if wire not in DIALECTS:
            return {}
        if history is not None:
            request = history.of_body(request)
        return dict(derive(wire, request, exchange.wire_response, url=url).attributes)
    except TapeError:
        return {}


def _referred(attributes: Mapping[str, Any], exchanges: Sequence[RecordedExchange]) -> RecordedExchange:
    reference = str(attributes.get(a.PLAYHEAD_EXCHANGE_REF, ""))
    for exchange in exchanges:
        if reference == f"{exchange.instance}/{exchange.exchange.id}":
            return exchange
    return exchanges[-1]
