"""Joins the responses of a Gemini stream into one."""

from __future__ import annotations

from typing import Any, cast

from playhead_genai.providers.google.parts import camel
from playhead_genai.providers.merging import Pieces, settled, updated
from playhead_genai.providers.reading import Object, integer, mapping, rest, sequence, text


class ContentFold:
    """Joins responses. Text that goes on is joined; everything else follows what came before."""

    def __init__(self) -> None:
        self._body: Object = {}
        self._candidates: dict[int, Object] = {}

    def event(self, name: str, value: Object) -> None:
        """Add the next response."""
        self._body = updated(self._body, rest(value, "candidates"))
        for item in sequence(value.get("candidates")):
            candidate = camel(item)
            have = self._candidates.setdefault(integer(candidate.get("index")) or 0, {})
            have |= rest(candidate, "content")
            content = mapping(candidate.get("content"))
            if content:
                whole: Object = have.setdefault("content", {"parts": []})
                whole |= rest(content, "parts")
                for part in sequence(content.get("parts")):
                    _add(whole["parts"], part)

    def done(self) -> None:
        """No-op: ``[DONE]`` is not part of this format."""

    def ended(self, whole: bool) -> bool:
        """Whether every candidate has a finish reason, or the prompt was blocked."""
        found = self._candidates.values()
        if not found:
            return "promptFeedback" in self._body
        return all(candidate.get("finishReason") for candidate in found)

    def body(self) -> Object:
        """Return the response so far."""
        found = [self._candidates[index] for index in sorted(self._candidates)]
        return self._body | ({"candidates": settled(found)} if found else {})


def _add(parts: list[Any], item: Any) -> None:
    """Add a part, to the text before it if it continues it."""
    part = dict(mapping(item))
    if not part:
        parts.append(item)
        return
    said = part.get("text")
    last = cast(Object, parts[-1]) if parts and isinstance(parts[-1], dict) else {}
    if not isinstance(said, str):
        parts.append(part)
    elif isinstance(have := last.get("text"), Pieces) and last.get("thought") == part.get("thought"):
        have.append(said)
        last.update(rest(part, "text"))
    elif said or text(part.get("thoughtSignature")) or not parts:
        parts.append(part | {"text": Pieces([said])})
