"""The interface of a provider's wire format, with which `derive` reads its exchanges.

A dialect is stateless. It gets JSON of uncertain shape and never raises for an unknown shape: what it
does not recognize becomes a generic part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from playhead_semconv import attributes as a
from playhead_semconv.facts import Value
from playhead_semconv.genai.messages import InputMessage, OutputMessage, Part, ToolDefinition
from playhead_semconv.wire.reading import Object, integer, mapping, rest, text


class ResponseContent(msgspec.Struct):
    """The contents of a response body."""

    messages: list[OutputMessage] = []
    """One per choice."""
    finish_reasons: list[str] = []
    attributes: dict[str, Value] = {}
    """Attributes of the span: response id and model, usage, …"""


class Fold(Protocol):
    """Joins the events of a stream into the body that a call without a stream would have had."""

    def event(self, name: str, value: Object) -> None:
        """Add the next event: its name (may be empty) and its JSON."""
        ...

    def done(self) -> None:
        """``[DONE]`` was received."""
        ...

    def ended(self, whole: bool) -> bool:
        """Whether the stream is complete. ``whole``: the HTTP body was received completely."""
        ...

    def body(self) -> Object:
        """Return the body so far. It contains an error event in the form of an error response."""
        ...


class Dialect(Protocol):
    """One wire format."""

    @property
    def wire(self) -> str:
        """Its name, as in ``playhead.wire``."""
        ...

    @property
    def operation(self) -> str:
        """Value of ``gen_ai.operation.name``."""
        ...

    @property
    def messages_field(self) -> str:
        """Field of the request that holds the messages."""
        ...

    @property
    def instructions_field(self) -> str:
        """Field of the request that holds instructions separately from the messages; empty: none."""
        ...

    @property
    def tools_fields(self) -> tuple[str, ...]:
        """Fields of the request that hold arrays of tools."""
        ...

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields, except those above."""
        ...

    def message(self, item: Any) -> InputMessage:
        """Return the message for one item of ``messages_field``, independent of the other items."""
        ...

    def instructions(self, value: Any) -> list[Part]:
        """Return the parts for the value of ``instructions_field``."""
        ...

    def tool(self, item: Any) -> ToolDefinition:
        """Return the definition for one item of ``tools_fields``."""
        ...

    def fold(self) -> Fold:
        """Return a new fold for a stream."""
        ...

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``.

        ``cut_short``: choices that have not ended get the reason error.
        """
        ...


def definition(kind: str, name: str, fields: Object, schema_field: str, *others: str) -> ToolDefinition:
    """Return the definition of a tool; ``schema_field`` of ``fields`` holds its parameters' schema.

    Fields named neither here nor in ``others`` are kept as extras; so is a schema that is not valid.
    """
    schema, description = fields.get(schema_field), text(fields.get("description"))
    known = ["type", "name", *others]
    if isinstance(schema, dict | bool):
        known.append(schema_field)
    else:
        schema = None
    if description is not None:
        known.append("description")
    return ToolDefinition(
        type=kind, name=name, description=description, parameters=schema, extras=rest(fields, *known)
    )


def error_of(body: Any) -> tuple[str, str]:
    """Return type and message of the error in a response body; empty where there is none.

    The type is the provider's code, else its type. Known forms: ``{"error": {...}}`` (OpenAI, Anthropic,
    Azure), ``{"error": "text"}``.
    """
    error = mapping(body).get("error")
    if isinstance(error, str):
        return "", error
    fields = mapping(error)
    code = fields.get("code")
    kind = text(code) or (str(code) if integer(code) is not None else None) or text(fields.get("type"))
    return kind or "", text(fields.get("message")) or ""


def tokens(usage: Object, paths: Iterable[tuple[str, str, str]]) -> dict[str, Value]:
    """Return usage attributes from (attribute, object or empty, field); no modality with 0 tokens."""
    found: dict[str, Value] = {}
    for name, group, field in paths:
        count = integer((mapping(usage.get(group)) if group else usage).get(field))
        if count is not None and (count or name not in _MODALITY_COUNTS):
            found[name] = count
    return found


_MODALITY_COUNTS = frozenset(
    {
        a.GEN_AI_USAGE_TEXT_INPUT_TOKENS,
        a.GEN_AI_USAGE_TEXT_OUTPUT_TOKENS,
        a.GEN_AI_USAGE_IMAGE_INPUT_TOKENS,
        a.GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS,
        a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS,
        a.GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS,
    }
)
