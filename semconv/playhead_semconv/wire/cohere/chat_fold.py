"""Joins the events of a Cohere stream into an answer."""

from __future__ import annotations

from typing import Any

from playhead_semconv.wire.merging import Indexed, merge, settled
from playhead_semconv.wire.reading import Object, integer, mapping, rest, text


class CohereFold:
    """Joins events into an answer. It has ended with ``message-end``."""

    def __init__(self) -> None:
        self._body: Object = {}
        self._message: Object = {}
        self._content = Indexed()
        self._calls = Indexed()
        self._citations: list[Any] = []
        self._ended = False

    def event(self, name: str, value: Object) -> None:
        """Add the next event."""
        kind = text(value.get("type")) or name
        delta = mapping(value.get("delta"))
        message = mapping(delta.get("message"))
        index = integer(value.get("index")) or 0
        if kind == "message-start":
            self._body |= rest(value, "type", "delta")
            self._message |= rest(message, "content", "tool_calls", "tool_plan", "citations")
        elif kind in ("content-start", "content-delta"):
            merge(self._content.setdefault(index, {}), mapping(message.get("content")))
        elif kind == "tool-plan-delta":
            merge(self._message, rest(message))
        elif kind in ("tool-call-start", "tool-call-delta"):
            merge(self._calls.setdefault(index, {}), mapping(message.get("tool_calls")))
        elif kind == "citation-start":
            self._citations.append(message.get("citations"))
        elif kind == "message-end":
            self._body |= rest(delta)
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
            message["content"] = settled(self._content)
        if self._calls:
            message["tool_calls"] = settled(self._calls)
        if self._citations:
            message["citations"] = self._citations
        return self._body | ({"message": message} if message else {})
