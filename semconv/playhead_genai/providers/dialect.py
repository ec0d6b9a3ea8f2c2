"""The interface of a provider's wire format, with which `derive` reads its exchanges.

A dialect is stateless. It gets JSON of uncertain shape and never raises for an unknown shape: what it
does not recognize becomes a generic part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from playhead_core.facts import Value
from playhead_genai.messages import InputMessage, OutputMessage, Part, ToolDefinition
from playhead_genai.providers.encodings import header
from playhead_genai.providers.reading import Object, integer, mapping, rest, text
from playhead_semconv import attributes as a


class ResponseContent(msgspec.Struct):
    """The contents of a response body."""

    messages: list[OutputMessage] = []
    """One per choice."""
    finish_reasons: list[str] = []
    attributes: dict[str, Value] = {}
    """Attributes of the span: response id and model, usage, …"""


class PartlyRead(ValueError):
    """An answer that violates its format at some place."""

    def __init__(self, problem: str, body: Object) -> None:
        """``body``: what was said before that place."""
        super().__init__(problem)
        self.body = body


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
    def provider(self) -> str:
        """The provider that this wire alone tells; empty if others speak it too."""
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
        """Fields of the request that hold tools."""
        ...

    def unwrapped(self, body: bytes) -> bytes:
        """Return the JSON object that a request's body (a form, …) stands for. Never raises."""
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

    def tools(self, value: Any) -> list[ToolDefinition]:
        """Return the definitions for the value of one of ``tools_fields``."""
        ...

    def fold(self) -> Fold:
        """Return a new fold for a stream."""
        ...

    def media(self, kind: str, data: bytes) -> Object | None:
        """Return the body for an answer of media type ``kind``; None: it must be JSON. `PartlyRead`."""
        ...

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``.

        ``cut_short``: choices that have not ended get the reason error.
        """
        ...


class LastEvent:
    """The fold of what is not streamed: keeps the last event, in case a server streams nevertheless."""

    def __init__(self) -> None:
        self._body: Object = {}

    def event(self, name: str, value: Object) -> None:
        """Keep the next event."""
        self._body = value

    def done(self) -> None:
        """No-op."""

    def ended(self, whole: bool) -> bool:
        """Whether the body is complete."""
        return whole

    def body(self) -> Object:
        """Return the last event."""
        return self._body


class Plain:
    """What a dialect is that has nothing of its own to say: no instructions, tools, stream, forms."""

    provider: str = ""
    instructions_field: str = ""
    tools_fields: tuple[str, ...] = ()

    def unwrapped(self, body: bytes) -> bytes:
        """Return the body: it is the JSON object itself."""
        return body

    def instructions(self, value: Any) -> list[Part]:
        """Return no parts: there are no instructions besides the messages."""
        return []

    def tools(self, value: Any) -> list[ToolDefinition]:
        """Return no definitions: there are no tools."""
        return []

    def fold(self) -> Fold:
        """Return a fold for a server that streams nevertheless."""
        return LastEvent()

    def media(self, kind: str, data: bytes) -> Object | None:
        """Return None: answers are JSON."""
        return None


def definition(kind: str, name: str, fields: Object, schema_field: str, *others: str) -> ToolDefinition:
    """Return the definition of a tool; ``schema_field`` of ``fields`` holds its parameters' schema.

    Fields named neither here nor in ``others`` are kept as extras; so is a schema that is not valid.
    """
    schema = fields.get(schema_field)
    description = fields.get("description")
    known = ["type", "name", *others]
    if isinstance(schema, dict | bool):
        known.append(schema_field)
    else:
        schema = None
    if isinstance(description, str):
        known.append("description")
    else:
        description = None
    return ToolDefinition(
        type=kind, name=name, description=description, parameters=schema, extras=rest(fields, *known)
    )


def error_of(body: Any) -> tuple[str, str]:
    """Return type and message of the error in a response body; empty if there is none.

    The type is the provider's code, its status in words (Google), else its type. Known forms:
    ``{"error": {...}}`` (OpenAI, Anthropic, Azure, Google), ``{"error": "text"}`` (Ollama).
    """
    error = mapping(body).get("error")
    if isinstance(error, str):
        return "", error
    fields = mapping(error)
    code = fields.get("code")
    status = text(fields.get("status")) if integer(code) is not None else None
    kind = (
        text(code)
        or status
        or (str(code) if integer(code) is not None else None)
        or text(fields.get("type"))
    )
    return kind or "", text(fields.get("message")) or ""


def refusal_of(body: Any, headers: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return type and message of a request that was refused without an ``error`` in the body.

    Known forms: ``{"message": …}`` (Cohere, Mistral; Bedrock, with the type in a header),
    ``{"detail": …}``.
    """
    fields = mapping(body)
    code = fields.get("code")
    kind = header(headers, "x-amzn-errortype").partition(":")[0]
    kind = kind or text(fields.get("__type")) or text(code) or text(fields.get("type")) or ""
    found = (text(fields.get(name)) for name in ("message", "Message", "detail"))
    return kind, next((one for one in found if one), "")


_COUNTED = {
    "x-amzn-bedrock-input-token-count": a.GEN_AI_USAGE_INPUT_TOKENS,
    "x-amzn-bedrock-output-token-count": a.GEN_AI_USAGE_OUTPUT_TOKENS,
}


def usage_in_headers(headers: Iterable[tuple[str, str]]) -> dict[str, Value]:
    """Return usage that headers tell: on Bedrock, of models whose bodies do not."""
    return {
        _COUNTED[name.lower()]: int(value)
        for name, value in headers
        if name.lower() in _COUNTED and value.isdecimal() and len(value) < 19
    }


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
