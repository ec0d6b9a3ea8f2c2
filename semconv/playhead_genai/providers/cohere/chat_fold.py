"""Joins the events of a Cohere stream into an answer."""

from __future__ import annotations

from typing import Any

from playhead_genai.providers.merging import Blocks, merge, settled, updated
from playhead_genai.providers.reading import Object, integer, mapping, rest, text


class CohereFold:
    """Joins events into an answer. It has ended with ``message-end``."""

    def __init__(self) -> None:
        self._body: Object = {}
        self._message: Object = {}
        self._content = Blocks()
        self._calls = Blocks()
        self._citations: list[Any] = []
        self._ended = False

    def event(self, name: str, value: Object) -> None:
        """Add the next event."""
        kind = text(value.get("type")) or name
        delta = mapping(value.get("delta"))
        message = mapping(delta.get("message"))
        index = integer(value.get("index"))
        if kind == "message-start":
            self._body |= rest(value, "type", "delta")
            self._message |= rest(message, "content", "tool_calls", "tool_plan", "citations")
        elif kind in ("content-start", "content-delta"):
            _add(self._content, kind, index, mapping(message.get("content")))
        elif kind == "content-end":
            self._content.end(index)
        elif kind == "tool-plan-delta":
            merge(self._message, rest(message))
        elif kind in ("tool-call-start", "tool-call-delta"):
            _add(self._calls, kind, index, mapping(message.get("tool_calls")))
        elif kind == "tool-call-end":
            self._calls.end(index)
        elif kind == "citation-start":
            self._citations.append(message.get("citations"))
        elif kind == "message-end":
            self._body = updated(self._body, rest(delta))
            self._ended = True

    def done(self) -> None:
        """No-op: ``[DONE]`` is not part of this format."""

    def ended(self, whole: bool) -> bool:
        """Whether ``message-end`` has come."""
        return self._ended

    def body(self) -> Object:
        """Return the answer so far."""
        message: Object = settled(self._message)
        if self._content:
            message["content"] = [settled(self._content[at]) for at in sorted(self._content)]
        if self._calls:
            message["tool_calls"] = [settled(self._calls[at]) for at in sorted(self._calls)]
        if self._citations:
            message["citations"] = self._citations
        return self._body | ({"message": message} if message else {})


def _add(blocks: Blocks, kind: str, index: int | None, delta: Object) -> None:
    if kind.endswith("-start"):
        blocks.begin(index, {}, text(delta.get("id")))
    merge(blocks.setdefault(blocks.at(index), {}), delta)
