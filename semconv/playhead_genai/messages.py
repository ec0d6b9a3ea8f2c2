"""Messages of the GenAI conventions: typed parts, messages, tool definitions, and their JSON text.

Every part, message and definition may have ``extras``: what the provider sent besides the named fields
(a reasoning signature, citations, …). They are written next to the named fields. The conventions allow
that everywhere except on `Blob`. JSON text is deterministic: ``type`` first, then the fields in the
order below, then the extras. A field that is None is left out. An extra with the name of a field gets an
underscore.

Shapes are those of ``schemas/*.json``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, TypeAlias, cast
from urllib.parse import unquote_to_bytes

import msgspec

from playhead_core.untrusted.shown_text import without_halves


class FinishReason:
    """Values of ``gen_ai.response.finish_reasons``. Other values of providers are kept as they are."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    TOOL_CALL = "tool_call"
    COMPACTION = "compaction"
    ERROR = "error"
    """The generation was cut short."""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    extras: dict[str, Any] = {}


class Text(_Part, frozen=True, kw_only=True):
    """Text to or from the model."""

    type: ClassVar[str] = "text"
    content: str


class Reasoning(_Part, frozen=True, kw_only=True):
    """Reasoning of the model. Signatures and encrypted content are in ``extras``."""

    type: ClassVar[str] = "reasoning"
    content: str


class ToolCall(_Part, frozen=True, kw_only=True):
    """The model asks the program to call a tool. ``arguments``: an object where it is one."""

    type: ClassVar[str] = "tool_call"
    id: str | None = None
    name: str
    arguments: Any = None


class ToolCallResponse(_Part, frozen=True, kw_only=True):
    """What the tool answered."""

    type: ClassVar[str] = "tool_call_response"
    id: str | None = None
    response: Any


class ServerToolCall(_Part, frozen=True, kw_only=True):
    """The provider calls a tool of its own. ``server_tool_call`` has a ``type``."""

    type: ClassVar[str] = "server_tool_call"
    id: str | None = None
    name: str
    server_tool_call: dict[str, Any]


class ServerToolCallResponse(_Part, frozen=True, kw_only=True):
    """What the provider's tool answered. ``server_tool_call_response`` has a ``type``."""

    type: ClassVar[str] = "server_tool_call_response"
    id: str | None = None
    server_tool_call_response: dict[str, Any]


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes within the message, as base64. The only part without extras."""

    type: ClassVar[str] = "blob"
    mime_type: str | None = None
    modality: str
    """image, video, audio, document, or another word."""
    content: str


class File(_Part, frozen=True, kw_only=True):
    """A file that was uploaded to the provider before."""

    type: ClassVar[str] = "file"
    mime_type: str | None = None
    modality: str
    file_id: str


class Uri(_Part, frozen=True, kw_only=True):
    """Something elsewhere, never a ``data:`` URL."""

    type: ClassVar[str] = "uri"
    mime_type: str | None = None
    modality: str
    uri: str


class Compaction(_Part, frozen=True, kw_only=True):
    """The compacted conversation so far."""

    type: ClassVar[str] = "compaction"
    id: str | None = None
    content: str | None = None


class Generic(_Part, frozen=True, kw_only=True):
    """Any other part: ``type`` is none of the types above, everything else is in ``extras``."""

    type: str


Part: TypeAlias = (
    Text
    | Reasoning
    | ToolCall
    | ToolCallResponse
    | ServerToolCall
    | ServerToolCallResponse
    | Blob
    | File
    | Uri
    | Compaction
    | Generic
)

PARTS: dict[str, type[Any]] = {
    kind.type: kind
    for kind in (
        Text,
        Reasoning,
        ToolCall,
        ToolCallResponse,
        ServerToolCall,
        ServerToolCallResponse,
        Blob,
        File,
        Uri,
        Compaction,
    )
}
"""Part classes by their ``type``; every other type is `Generic`."""


class InputMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to the model. ``role``: system, developer, user, assistant, tool, or another word."""

    role: str
    parts: list[Part] = []
    name: str | None = None
    extras: dict[str, Any] = {}


class OutputMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message from the model: one choice."""

    role: str
    parts: list[Part] = []
    name: str | None = None
    finish_reason: str | None = None
    """Read from older telemetry, never written; see ``gen_ai.response.finish_reasons``."""
    extras: dict[str, Any] = {}


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model may call. ``parameters``: JSON schema, for ``type`` function."""

    type: str
    name: str
    description: str | None = None
    parameters: Any = None
    extras: dict[str, Any] = {}


def _optional(kind: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(field.name for field in msgspec.structs.fields(kind) if not field.required)


_OPTIONAL: dict[type[Any], frozenset[str]] = {
    kind: _optional(kind)
    for kind in (*PARTS.values(), Generic, InputMessage, OutputMessage, ToolDefinition)
}
_TAGS: dict[type[Any], str] = {kind: name for name, kind in PARTS.items()}


def plain(value: Part | InputMessage | OutputMessage | ToolDefinition) -> dict[str, Any]:
    """Return ``value`` as the JSON object of the conventions."""
    kind = type(value)
    optional = _OPTIONAL[kind]
    tag = _TAGS.get(kind)
    out: dict[str, Any] = {} if tag is None else {"type": tag}
    for name in kind.__struct_fields__:
        if name == "extras":
            continue
        item = getattr(value, name)
        if name == "parts":
            out[name] = [plain(part) for part in item]
        elif item is not None or name not in optional:
            out[name] = item
    if not isinstance(value, Blob):
        for name, item in value.extras.items():
            taken = name in out or name == "type" or name in kind.__struct_fields__
            out[f"{name}_" if taken else name] = item
    return out


def encode(values: Iterable[Part | InputMessage | OutputMessage | ToolDefinition]) -> bytes:
    """Return the JSON array of ``values``, UTF-8."""
    return msgspec.json.encode([plain(value) for value in values])


def encode_one(value: Part | InputMessage | OutputMessage | ToolDefinition) -> bytes:
    """Return the JSON object of ``value``, UTF-8."""
    return msgspec.json.encode(plain(value))


def to_json(values: Sequence[Part | InputMessage | OutputMessage | ToolDefinition]) -> str:
    """Return the JSON array of ``values``, as the text of a span attribute.

    Halves of surrogate pairs are joined where they meet, and replaced elsewhere.
    """
    try:
        return encode(values).decode()
    except UnicodeEncodeError:
        found = [plain(value) for value in values]
        return without_halves(json.dumps(found, ensure_ascii=False, separators=(",", ":")))


def called_in(messages: Iterable[InputMessage | OutputMessage]) -> list[str]:
    """Return the name of the tool of each call in messages, in order."""
    parts = (part for message in messages for part in message.parts)
    return [part.name for part in parts if isinstance(part, ToolCall)]


def tools_called(value: str | bytes | Sequence[Any]) -> list[str]:
    """As `called_in` for messages in an attribute, without reading parts of other types. ValueError."""
    parts = [part for item in _objects(value) for part in _objects(item.get("parts") or ())]
    calls = [read_part(part) for part in parts if part.get("type") == ToolCall.type]
    return [call.name for call in calls if isinstance(call, ToolCall)]


def read_part(value: dict[str, Any]) -> Part:
    """The inverse of `plain` for a part. What does not have the shape of its type becomes `Generic`."""
    name = value.get("type")
    kind = PARTS.get(name) if isinstance(name, str) else None
    if kind is ToolCallResponse and "response" not in value and "result" in value:
        value = {**_without(value, ("result",)), "response": value["result"]}  # so pydantic-ai calls it
    if kind is not None:
        try:
            part: Part = msgspec.convert(value, kind)
        except msgspec.ValidationError:
            return Generic(type=str(name), extras=_without(value, ("type",)))
        extras = _without(value, ("type", *kind.__struct_fields__))
        return msgspec.structs.replace(part, extras=extras) if extras and kind is not Blob else part
    return Generic(type=str(name), extras=_without(value, ("type",)))


def read_input_messages(value: str | bytes | Sequence[Any]) -> list[InputMessage]:
    """Input messages from an attribute, JSON text or structured. ValueError if it is neither."""
    return [_message(item, InputMessage) for item in _objects(value)]


def read_output_messages(value: str | bytes | Sequence[Any]) -> list[OutputMessage]:
    """Output messages from an attribute, JSON text or structured. ValueError if it is neither."""
    return [_message(item, OutputMessage) for item in _objects(value)]


def read_parts(value: str | bytes | Sequence[Any]) -> list[Part]:
    """System instructions from an attribute, JSON text or structured. ValueError if it is neither."""
    return [read_part(item) for item in _objects(value)]


def read_tool_definitions(value: str | bytes | Sequence[Any]) -> list[ToolDefinition]:
    """Tool definitions from an attribute, JSON text or structured. ValueError if it is neither."""
    fields = ("type", "name", "description", "parameters")
    return [
        ToolDefinition(
            type=_text(item.get("type")) or "",
            name=_text(item.get("name")) or "",
            description=_text(item.get("description")),
            parameters=item.get("parameters"),
            extras=_without(item, fields),
        )
        for item in _objects(value)
    ]


def _message(item: dict[str, Any], kind: type[Any]) -> Any:
    values: dict[str, Any] = {name: _text(item.get(name)) for name in ("role", "name", "finish_reason")}
    values["role"] = values["role"] or ""
    values["parts"] = read_parts(item.get("parts") or ())
    known = {name: value for name, value in values.items() if name in kind.__struct_fields__}
    return kind(**known, extras=_without(item, kind.__struct_fields__))


def _objects(value: str | bytes | Sequence[Any]) -> list[dict[str, Any]]:
    found: Any = msgspec.json.decode(value) if isinstance(value, str | bytes) else value
    items = cast(Sequence[Any], found) if isinstance(found, list | tuple) else None
    if items is None or not all(isinstance(item, dict) for item in items):
        raise ValueError("not an array of objects")
    return list(items)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _without(value: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    known = set(names)
    return {name: item for name, item in value.items() if name not in known}


_MODALITIES = ("image", "video", "audio")
_AUDIO = {"mp3": "audio/mpeg", "pcm16": "audio/pcm", "g711_ulaw": "audio/basic"}


def modality_of(mime_type: str | None, fallback: str = "document") -> str:
    """Return the conventions' modality for a MIME type."""
    kind = (mime_type or "").partition("/")[0]
    if kind in _MODALITIES:
        return kind
    return "document" if mime_type else fallback


def audio_type(format_name: str | None) -> str | None:
    """Return the MIME type for OpenAI's name of an audio format."""
    return _AUDIO.get(format_name, f"audio/{format_name}") if format_name else None


def located(url: str, modality: str, extras: dict[str, object]) -> Blob | Uri:
    """Return a part for ``url``: `Blob` for a ``data:`` URL (which has no ``extras``), else `Uri`."""
    if not url[:5].lower() == "data:":
        return Uri(modality=modality, uri=url, extras=extras)
    head, _, data = url[5:].partition(",")
    mime_type, *options = head.split(";")
    if "base64" not in (option.strip().lower() for option in options):
        data = base64.b64encode(unquote_to_bytes(data)).decode()
    return Blob(mime_type=mime_type or None, modality=modality_of(mime_type, modality), content=data)
