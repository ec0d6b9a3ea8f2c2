"""What OpenAI's chat completions and Responses API have in common."""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import (
    Blob,
    File,
    Generic,
    Part,
    Reasoning,
    Text,
    Uri,
    audio_type,
    located,
    modality_of,
)
from playhead_genai.providers.reading import Object, mapping, number, rest, sequence, text, without_none
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOutputType


def sampling(request: Object) -> dict[str, Value]:
    """Return attributes for the parameters that have the same name in both APIs."""
    tier = text(request.get("service_tier"))
    return without_none(
        {
            a.GEN_AI_REQUEST_MODEL: text(request.get("model")),
            a.GEN_AI_REQUEST_TEMPERATURE: number(request.get("temperature")),
            a.GEN_AI_REQUEST_TOP_P: number(request.get("top_p")),
            a.GEN_AI_REQUEST_STREAM: True if request.get("stream") is True else None,
            a.OPENAI_REQUEST_SERVICE_TIER: None if tier == "auto" else tier,
        }
    )


def output_type(form: Any) -> str | None:
    """Return the output type for a ``response_format`` or ``text.format``."""
    kind = text(mapping(form).get("type"))
    if kind in ("json_schema", "json_object"):
        return GenAiOutputType.JSON
    return GenAiOutputType.TEXT if kind == "text" else None


def content_parts(content: Any) -> list[Part]:
    """Return the parts for a message's ``content``: nothing, a string, or an array of content parts."""
    if isinstance(content, str):
        return [Text(content=content)] if content else []
    if isinstance(content, list):
        return [content_part(item) for item in sequence(content)]
    return [] if content is None else [Generic(type="content", extras={"content": content})]


def content_part(item: Any) -> Part:
    """Return the part for one content part of either API."""
    if isinstance(item, str):
        return Text(content=item)
    value = mapping(item)
    kind = text(value.get("type")) or "content"
    read = _CONTENT.get(kind)
    part = read(value) if read else None
    return part or Generic(type=kind, extras=rest(value, "type") if value else {"content": item})


def refusal(content: str) -> Generic:
    """Return the part for a refusal; the conventions have no type of their own for it."""
    return Generic(type="refusal", extras={"content": content})


def _text(value: Object) -> Part | None:
    content = value.get("text")
    if not isinstance(content, str):
        return None
    return Text(content=content, extras=rest(value, "type", "text"))


def _refusal(value: Object) -> Part | None:
    content = text(value.get("refusal"))
    return refusal(content) if content else None


def _image(value: Object) -> Part | None:
    image = value.get("image_url")
    extras = rest(value, "type", "image_url", "file_id")
    if isinstance(image, dict):  # chat: {"url": …, "detail": …}
        extras |= rest(mapping(image), "url")
        image = mapping(image).get("url")
    if url := text(image):
        return located(url, "image", extras)
    file_id = text(value.get("file_id"))
    return File(modality="image", file_id=file_id, extras=extras) if file_id else None


def _audio(value: Object) -> Part | None:
    audio = mapping(value.get("input_audio"))
    data = text(audio.get("data"))
    return (
        Blob(mime_type=audio_type(text(audio.get("format"))), modality="audio", content=data)
        if data
        else None
    )


def _file(value: Object) -> Part | None:
    fields = mapping(value.get("file")) or value  # chat nests them
    name = text(fields.get("filename"))
    extras = without_none({"filename": name}) | rest(value, "type", "file", *_FILE_FIELDS)
    if file_id := text(fields.get("file_id")):
        return File(modality="document", file_id=file_id, extras=extras)
    if url := text(fields.get("file_url")):
        return Uri(modality="document", uri=url, extras=extras)
    data = text(fields.get("file_data"))
    if data is None:
        return None
    if data.startswith("data:"):
        return located(data, "document", extras)
    return Blob(modality=modality_of(None), content=data)


def _thinking(value: Object) -> Part | None:
    """Convert reasoning among the content, as Mistral sends it."""
    said = value.get("thinking")
    if isinstance(said, str):
        return Reasoning(content=said, extras=rest(value, "type", "thinking"))
    texts = [text(mapping(item).get("text")) for item in sequence(said)]
    content = "".join(one for one in texts if one)
    return Reasoning(content=content, extras=rest(value, "type", "thinking")) if content else None


_FILE_FIELDS = ("file_id", "file_url", "file_data", "filename")

_CONTENT = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "summary_text": _text,
    "refusal": _refusal,
    "image_url": _image,
    "input_image": _image,
    "input_audio": _audio,
    "thinking": _thinking,
    "file": _file,
    "input_file": _file,
}
