"""Parts of Gemini's contents, in requests and in responses.

Names may be written in camel case or with underscores; Google accepts both.
"""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import (
    Blob,
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
from playhead_genai.providers.reading import Object, integer, mapping, rest, sequence, text
from playhead_semconv import attributes as a

_CODE = "code_execution"


def camel(value: Any) -> Object:
    """Return an object's fields with their names in camel case; an empty object for anything else."""
    return {_camel(name): item for name, item in mapping(value).items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others) if first else name


def role_of(value: Object, otherwise: str) -> str:
    """Return the role of a content in the conventions' words."""
    role = text(value.get("role")) or otherwise
    return {"model": "assistant", "function": "tool"}.get(role, role)


def content_parts(content: Any) -> list[Part]:
    """Return the parts of a content: a string, a content with parts, a part, or an array of these."""
    if isinstance(content, str):
        return [Text(content=content)] if content else []
    if isinstance(content, list):
        return [part for item in sequence(content) for part in content_parts(item)]
    value = mapping(content)
    if "parts" in value:
        found = value["parts"]
        return [_part(item) for item in (sequence(found) if isinstance(found, list) else [found])]
    if not value or set(value) == {"role"}:
        return []
    return [_part(value)]


def _part(item: Any) -> Part:
    if isinstance(item, str):
        return Text(content=item)
    value = camel(item)
    for name, read in _READ.items():
        if name in value:
            part = read(value, rest(value, name, "thought"))
            if part is not None:
                return part
    kind = next(iter(rest(value, "thoughtSignature", "thought")), "part")
    return Generic(type=f"gemini_{kind}", extras=rest(value) if value else {"content": item})


def _text(value: Object, extras: Object) -> Part | None:
    content = value["text"]
    if not isinstance(content, str):
        return None
    if value.get("thought") is True:
        return Reasoning(content=content, extras=extras)
    return Text(content=content, extras=extras)


def _call(value: Object, extras: Object) -> Part:
    call = mapping(value["functionCall"])
    return ToolCall(
        id=text(call.get("id")),
        name=text(call.get("name")) or "",
        arguments=call.get("args"),
        extras=extras | rest(call, "id", "name", "args"),
    )


def _response(value: Object, extras: Object) -> Part:
    answer = mapping(value["functionResponse"])
    known = rest(answer, "id", "response")
    return ToolCallResponse(
        id=text(answer.get("id")), response=answer.get("response"), extras=extras | known
    )


def _inline(value: Object, extras: Object) -> Part | None:
    inline = camel(value["inlineData"])
    data, mime_type = text(inline.get("data")), text(inline.get("mimeType"))
    return Blob(mime_type=mime_type, modality=modality_of(mime_type), content=data) if data else None


def _file(value: Object, extras: Object) -> Part | None:
    file = camel(value["fileData"])
    uri, mime_type = text(file.get("fileUri")), text(file.get("mimeType"))
    extras = extras | rest(file, "fileUri", "mimeType")
    if uri is None:
        return None
    return Uri(mime_type=mime_type, modality=modality_of(mime_type), uri=uri, extras=extras)


def _code(value: Object, extras: Object) -> Part:
    code = mapping(value["executableCode"])
    return ServerToolCall(
        id=text(code.get("id")),
        name=_CODE,
        server_tool_call={"type": _CODE} | rest(code, "id", "type"),
        extras=extras,
    )


def _result(value: Object, extras: Object) -> Part:
    result = mapping(value["codeExecutionResult"])
    return ServerToolCallResponse(
        id=text(result.get("id")),
        server_tool_call_response={"type": _CODE} | rest(result, "id", "type"),
        extras=extras,
    )


_READ = {
    "text": _text,
    "functionCall": _call,
    "functionResponse": _response,
    "inlineData": _inline,
    "fileData": _file,
    "executableCode": _code,
    "codeExecutionResult": _result,
}


_OUTPUT = {
    "TEXT": a.GEN_AI_USAGE_TEXT_OUTPUT_TOKENS,
    "IMAGE": a.GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS,
    "AUDIO": a.GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS,
}
_DETAILS = {
    "promptTokensDetails": {
        "TEXT": a.GEN_AI_USAGE_TEXT_INPUT_TOKENS,
        "IMAGE": a.GEN_AI_USAGE_IMAGE_INPUT_TOKENS,
        "AUDIO": a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS,
    },
    "candidatesTokensDetails": _OUTPUT,
    "responseTokensDetails": _OUTPUT,
}
_NUMBERED = ("", "TEXT", "IMAGE", "VIDEO", "AUDIO", "DOCUMENT")
"""Modalities by number, where a client asked for numbers."""


def usage_of(metadata: Any) -> dict[str, Value]:
    """Return the attributes for ``usageMetadata``.

    Results of the provider's tools are input; thoughts are output. A live session counts its response
    under a name of its own.
    """
    usage = camel(metadata)
    found: dict[str, Value] = {}
    for name, fields in _SUMS:
        counts = [count for field in fields if (count := integer(usage.get(field))) is not None]
        total = integer(sum(counts))
        if counts and total is not None:
            found[name] = total
    for field, names in _DETAILS.items():
        for item in sequence(usage.get(field)):
            detail = camel(item)
            modality, count = detail.get("modality"), integer(detail.get("tokenCount"))
            at = integer(modality)
            word = _NUMBERED[at] if at is not None and 0 <= at < len(_NUMBERED) else modality
            if isinstance(word, str) and word in names and count:
                found[names[word]] = count
    return found


_SUMS = (
    (a.GEN_AI_USAGE_INPUT_TOKENS, ("promptTokenCount", "toolUsePromptTokenCount")),
    (a.GEN_AI_USAGE_OUTPUT_TOKENS, ("candidatesTokenCount", "responseTokenCount", "thoughtsTokenCount")),
    (a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, ("cachedContentTokenCount",)),
    (a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, ("thoughtsTokenCount",)),
)
