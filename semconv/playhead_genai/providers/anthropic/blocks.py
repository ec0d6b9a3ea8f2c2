"""Content blocks of Anthropic messages, in requests and in responses."""

from __future__ import annotations

from typing import Any

from playhead_genai.messages import (
    Blob,
    Compaction,
    File,
    Generic,
    Part,
    Reasoning,
    ServerToolCall,
    ServerToolCallResponse,
    Text,
    ToolCall,
    ToolCallResponse,
    Uri,
    modality_of,
)
from playhead_genai.providers.reading import Object, mapping, rest, sequence, text

_RESULT = "_tool_result"


def block_parts(content: Any) -> list[Part]:
    """Return the parts for the content of a message: nothing, a string, or an array of blocks."""
    if isinstance(content, str):
        return [Text(content=content)] if content else []
    if isinstance(content, list):
        return [block_part(item) for item in sequence(content)]
    return [] if content is None else [Generic(type="content", extras={"content": content})]


def block_part(item: Any) -> Part:
    """Return the part for one block. An unknown block becomes a generic part."""
    if isinstance(item, str):
        return Text(content=item)
    value = mapping(item)
    kind = text(value.get("type")) or "content"
    read = _BLOCKS.get(kind)
    if kind.endswith(_RESULT):
        read = _server_result
    part = read(value) if read else None
    return part or Generic(type=kind, extras=rest(value, "type") if value else {"content": item})


def _text(value: Object) -> Part | None:
    content = value.get("text")
    return (
        Text(content=content, extras=rest(value, "type", "text")) if isinstance(content, str) else None
    )


def _thinking(value: Object) -> Part | None:
    content = value.get("thinking")
    extras = rest(value, "type", "thinking")
    return Reasoning(content=content, extras=extras) if isinstance(content, str) else None


def _redacted_thinking(value: Object) -> Part:
    return Reasoning(content="", extras={"redacted": True} | rest(value, "type"))


def _tool_use(value: Object) -> Part:
    return ToolCall(
        id=text(value.get("id")),
        name=text(value.get("name")) or "",
        arguments=value.get("input"),
        extras=rest(value, "type", "id", "name", "input"),
    )


def _tool_result(value: Object) -> Part:
    return ToolCallResponse(
        id=text(value.get("tool_use_id")),
        response=value.get("content"),
        extras=rest(value, "type", "tool_use_id", "content"),
    )


def _server_tool_use(value: Object) -> Part:
    name = text(value.get("name")) or ""
    return ServerToolCall(
        id=text(value.get("id")),
        name=name,
        server_tool_call={"type": name} | rest(value, "type", "id", "name"),
    )


def _server_result(value: Object) -> Part:
    tool = str(value.get("type")).removesuffix(_RESULT)
    return ServerToolCallResponse(
        id=text(value.get("tool_use_id")),
        server_tool_call_response={"type": tool} | rest(value, "type", "tool_use_id"),
    )


def _sourced(value: Object) -> Part | None:
    """Convert an image or a document; text sources stay generic."""
    modality = "image" if value.get("type") == "image" else "document"
    source = mapping(value.get("source"))
    kind, media_type = source.get("type"), text(source.get("media_type"))
    data, url, file_id = (text(source.get(name)) for name in ("data", "url", "file_id"))
    extras = rest(value, "type", "source")
    if kind == "base64" and data:
        return Blob(mime_type=media_type, modality=modality_of(media_type, modality), content=data)
    if kind == "url" and url:
        return Uri(mime_type=media_type, modality=modality, uri=url, extras=extras)
    if kind == "file" and file_id:
        return File(mime_type=media_type, modality=modality, file_id=file_id, extras=extras)
    return None


def _compaction(value: Object) -> Part:
    return Compaction(content=text(value.get("content")), extras=rest(value, "type", "content"))


_BLOCKS = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted_thinking,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "server_tool_use": _server_tool_use,
    "mcp_tool_use": _server_tool_use,
    "image": _sourced,
    "document": _sourced,
    "compaction": _compaction,
}
