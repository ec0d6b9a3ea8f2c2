"""Joins the events of a Converse stream into an answer; those of Nova models have the same form."""

from __future__ import annotations

from typing import cast

from playhead_genai.providers.merging import Blocks, merge, settled, updated
from playhead_genai.providers.reading import Object, integer, mapping, parsed_arguments, rest, text

_KINDS = (
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
)


class ConverseFold:
    """Joins events into an answer. The stream has ended with ``metadata``, else with ``messageStop``."""

    def __init__(self) -> None:
        self._body: Object = {}
        self._message: Object = {}
        self._blocks = Blocks()
        self._stopped = False

    def event(self, name: str, value: Object) -> None:
        """Add the next event. Without a name, its only field is the name."""
        if name == "error" or "error" in value:
            self._body["error"] = value.get("error")
        elif name in _KINDS:
            self._add(name, value)
        else:
            for kind in _KINDS:
                if isinstance(value.get(kind), dict):
                    self._add(kind, mapping(value[kind]))

    def _add(self, kind: str, value: Object) -> None:
        index = integer(value.get("contentBlockIndex"))
        if kind == "messageStart":
            self._message |= rest(value, "p")
        elif kind == "contentBlockStart":
            block: Object = {}
            merge(block, mapping(value.get("start")))
            self._blocks.begin(index, block)
        elif kind == "contentBlockDelta":
            at = self._blocks.at(index)
            self._delta(self._blocks.setdefault(at, {}), mapping(value.get("delta")))
        elif kind == "contentBlockStop":
            self._blocks.end(index)
        elif kind == "messageStop":
            self._body |= rest(value, "p")
            self._stopped = True
        elif kind == "metadata":
            self._body = updated(self._body, rest(value, "p"))

    def _delta(self, block: Object, delta: Object) -> None:
        reasoning = mapping(delta.get("reasoningContent"))
        merge(block, rest(delta, "reasoningContent", "citation"))
        if reasoning:
            told = rest(reasoning, "redactedContent")
            redacted = {"redactedContent": reasoning.get("redactedContent")}
            merge(block, {"reasoningContent": {"reasoningText": told} if told else redacted})
        if (citation := delta.get("citation")) is not None:
            merge(block, {"citations": [citation]})

    def done(self) -> None:
        """No-op: ``[DONE]`` is not part of this format."""

    def ended(self, whole: bool) -> bool:
        """Whether ``messageStop`` has come."""
        return self._stopped

    def body(self) -> Object:
        """Return the answer so far. The input of a truncated tool call is its text so far."""
        blocks = [dict(self._blocks[index]) for index in sorted(self._blocks)]
        message = self._message | ({"content": [_settled(block) for block in blocks]} if blocks else {})
        return self._body | ({"output": {"message": message}} if message else {})


def _settled(block: Object) -> Object:
    found = cast(Object, settled(block))
    call = mapping(found.get("toolUse"))
    if text(call.get("input")):
        found["toolUse"] = call | {"input": parsed_arguments(call["input"])}
    return found
