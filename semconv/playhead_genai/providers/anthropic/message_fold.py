"""Joins the events of an Anthropic stream into a message."""

from __future__ import annotations

from typing import Any

from playhead_genai.providers.merging import Blocks, Pieces, merge, settled, updated
from playhead_genai.providers.reading import (
    Object,
    integer,
    mapping,
    parsed_arguments,
    rest,
    sequence,
    text,
)


class MessageFold:
    """Joins events into a message. Usage in ``message_delta`` replaces that in ``message_start``."""

    def __init__(self) -> None:
        self._message: Object = {}
        self._blocks = Blocks()
        self._inputs: dict[int, Pieces] = {}
        self._ended = False

    def event(self, name: str, value: Object) -> None:
        """Add the next event."""
        kind = text(value.get("type")) or name
        index = integer(value.get("index"))
        if kind == "message_start":
            self._message = dict(mapping(value.get("message")))
            blocks = sequence(self._message.pop("content", None))
            self._blocks = Blocks()
            for number, block in enumerate(blocks):
                self._blocks.begin(number, _begun(mapping(block)))
            self._inputs = {}
        elif kind == "content_block_start":
            block = mapping(value.get("content_block"))
            self._blocks.begin(index, _begun(block), text(block.get("id")))
        elif kind == "content_block_delta":
            self._delta(self._blocks.at(index), mapping(value.get("delta")))
        elif kind == "content_block_stop":
            self._blocks.end(index)
        elif kind == "message_delta":
            usage = {"usage": rest(mapping(value.get("usage")))}
            self._message |= rest(mapping(value.get("delta"))) | rest(value, "type", "delta", "usage")
            self._message.setdefault("usage", {})
            self._message = updated(self._message, usage)
        elif kind == "message_stop":
            self._ended = True
        elif kind == "error":
            self._message["error"] = value.get("error")

    def done(self) -> None:
        """No-op: ``[DONE]`` is not part of this format."""

    def ended(self, whole: bool) -> bool:
        """Whether ``message_stop`` has come."""
        return self._ended

    def body(self) -> Object:
        """Return the message so far. The input of a truncated tool call is its text so far."""
        blocks: dict[int, Any] = settled(dict(self._blocks))
        for index, pieces in self._inputs.items():
            if written := "".join(pieces):
                blocks[index]["input"] = parsed_arguments(written)
        if not blocks:
            return self._message
        return self._message | {"content": [blocks[index] for index in sorted(blocks)]}

    def _delta(self, index: int, delta: Object) -> None:
        block = self._blocks.setdefault(
            index, _begun({"type": _TYPES.get(text(delta.get("type")) or "")})
        )
        partial = delta.get("partial_json")
        if isinstance(partial, str):
            self._inputs.setdefault(index, Pieces()).append(partial)
        if (citation := delta.get("citation")) is not None:
            block["citations"] = [*sequence(block.get("citations")), citation]
        merge(block, rest(delta, "type", "partial_json", "citation"))


_TYPES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
    "compaction_delta": "compaction",
}
"""Type of a delta → type of the block, where the event that starts it is missing."""


def _begun(block: Object) -> Object:
    """Return a block whose strings may grow."""
    grown: Object = {}
    merge(grown, block)
    return grown
