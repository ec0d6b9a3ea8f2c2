"""Content blocks of Bedrock's Converse API and of Amazon's Nova models."""

from __future__ import annotations

from typing import Any

from playhead_genai.messages import Blob, Generic, Part, Reasoning, Text, ToolCall, ToolCallResponse, Uri
from playhead_genai.providers.reading import Object, mapping, rest, sequence, text

_MEDIA = {"image": "image", "video": "video", "audio": "audio", "document": "application"}
_TYPES = {"txt": "text/plain", "md": "text/markdown", "html": "text/html", "csv": "text/csv"}


def block_parts(content: Any) -> list[Part]:
    """Return the parts for the content of a message: nothing, a string, or an array of blocks."""
    if isinstance(content, str):
        return [Text(content=content)] if content else []
    if isinstance(content, list):
        return [_block(item) for item in sequence(content)]
    return [] if content is None else [Generic(type="content", extras={"content": content})]


def _block(item: Any) -> Part:
    """Return the part for one block: an object with one field, which names its kind."""
    if isinstance(item, str):
        return Text(content=item)
    value = mapping(item)
    if isinstance(value.get("text"), str):
        return Text(content=value["text"], extras=rest(value, "text", "type"))
    for kind, read in _READ.items():
        if isinstance(inner := value.get(kind), dict):
            return read(mapping(inner))
    for kind, family in _MEDIA.items():
        if isinstance(inner := value.get(kind), dict):
            part = _media(mapping(inner), kind, family)
            if part is not None:
                return part
    kind = next(iter(value), "block")
    return Generic(type=f"bedrock_{kind}", extras=rest(value, "type") if value else {"content": item})


def _tool_use(value: Object) -> Part:
    return ToolCall(
        id=text(value.get("toolUseId")),
        name=text(value.get("name")) or "",
        arguments=value.get("input"),
        extras=rest(value, "toolUseId", "name", "input"),
    )


def _tool_result(value: Object) -> Part:
    return ToolCallResponse(
        id=text(value.get("toolUseId")),
        response=value.get("content"),
        extras=rest(value, "toolUseId", "content"),
    )


def _reasoning(value: Object) -> Part:
    said = mapping(value.get("reasoningText"))
    extras = rest(value, "reasoningText") | rest(said, "text")
    return Reasoning(content=text(said.get("text")) or "", extras=extras)


def _cited(value: Object) -> Part:
    texts = (text(mapping(item).get("text")) for item in sequence(value.get("content")))
    return Text(content="".join(one for one in texts if one), extras=rest(value, "content"))


_READ = {
    "toolUse": _tool_use,
    "toolResult": _tool_result,
    "reasoningContent": _reasoning,
    "citationsContent": _cited,
}


def _media(value: Object, modality: str, family: str) -> Part | None:
    form, source = text(value.get("format")), mapping(value.get("source"))
    mime_type = _TYPES.get(form, f"{family}/{form}") if form else None
    if data := text(source.get("bytes")):
        return Blob(mime_type=mime_type, modality=modality, content=data)
    if uri := text(mapping(source.get("s3Location")).get("uri")):
        extras = rest(value, "format", "source")
        return Uri(mime_type=mime_type, modality=modality, uri=uri, extras=extras)
    return None
