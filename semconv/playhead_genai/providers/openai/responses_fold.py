"""Joins the events of a Responses API stream into a response.

The last event of a stream contains the complete response. So the joined response matters only where a
stream was cut short.
"""

from __future__ import annotations

from typing import Any

from playhead_genai.providers.merging import Indexed, Pieces, settled, updated
from playhead_genai.providers.reading import Object, integer, mapping, rest, sequence, text

ENDINGS = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}
)
_STATES = frozenset({"response.created", "response.in_progress", "response.queued"})

_FIELDS = {
    "output_text": ("message", "content", "text"),
    "refusal": ("message", "content", "refusal"),
    "reasoning_text": ("reasoning", "content", "text"),
    "reasoning_summary_text": ("reasoning", "summary", "text"),
    "function_call_arguments": ("function_call", "", "arguments"),
    "mcp_call_arguments": ("mcp_call", "", "arguments"),
    "custom_tool_call_input": ("custom_tool_call", "", "input"),
    "code_interpreter_call_code": ("code_interpreter_call", "", "code"),
}
"""Subject of a ``response.*.delta`` or ``.done`` event → type of the item, its array of parts (or none),
field of the part or item."""

_PARTS = {"content_part": "content", "reasoning_summary_part": "summary"}
"""Subject of a ``response.*.added`` or ``.done`` event → array of parts in the item."""


class ResponseFold:
    """Joins events into a response."""

    def __init__(self) -> None:
        self._response: Object = {}
        self._items = Indexed()
        self._positions: dict[str | None, int] = {}
        """Id of an item → its position."""
        self._last: dict[int | None, int] = {}
        """Index that the server gives → position of the last item with it."""
        self._ended = False

    def event(self, name: str, value: Object) -> None:
        """Add the next event."""
        kind = text(value.get("type")) or name
        if kind in ENDINGS or kind in _STATES:
            response = mapping(value.get("response"))
            self._response = updated({"usage": self._response.get("usage")}, response)
            self._ended = self._ended or kind in ENDINGS
        elif kind == "error":
            self._response["error"] = value.get("error") or rest(value, "type")
        elif "output_index" in value or "item_id" in value or "item" in value:
            subject, _, action = kind.removeprefix("response.").rpartition(".")
            if subject == "output_item":
                item = dict(mapping(value.get("item")))
                begins = action == "added"
                self._items[self._position(value, text(item.get("id")), begins=begins)] = item
            else:
                position = self._position(value, text(value.get("item_id")))
                _add(self._items.setdefault(position, {}), subject, action, value)

    def _position(self, value: Object, identity: str | None, *, begins: bool = False) -> int:
        """Return the position of an item. Some servers give all items the same index, or none."""
        if identity in self._positions:
            return self._positions[identity]
        index = integer(value.get("output_index"))
        last = max(self._items, default=-1)
        if begins:
            position = last + 1 if index is None or index in self._items else index
        else:
            position = self._last.get(index, max(last, 0) if index is None else index)
        self._last[index] = position
        if identity:
            self._positions[identity] = position
        return position

    def done(self) -> None:
        """No-op: some servers send ``[DONE]`` after the last event."""

    def ended(self, whole: bool) -> bool:
        """Whether the event with the complete response was received."""
        return self._ended

    def body(self) -> Object:
        """Return the response so far."""
        if self._items and not self._response.get("output"):
            return self._response | {"output": settled(self._items)}
        return self._response


def _add(item: Object, subject: str, action: str, value: Object) -> None:
    """Add an event's data to a field or a part of ``item``."""
    if subject in _PARTS:
        _parts(item, _PARTS[subject])[_part_index(value)] = dict(mapping(value.get("part")))
        return
    kind, array, field = _FIELDS.get(subject, (subject, "", subject))
    if subject == "output_text.annotation":
        part = _part(item, "content", value, "output_text")
        part["annotations"] = [*sequence(part.get("annotations")), value.get("annotation")]
    elif action == "partial_image":
        item["partial_image_b64"] = value.get("partial_image_b64")
    elif action == "delta" or (action == "done" and field in value):
        if "type" not in item:  # the event that starts it is missing
            item |= {"type": kind} | ({"role": "assistant"} if kind == "message" else {})
        target = _part(item, array, value, subject) if array else item
        if action == "done":
            target[field] = value[field]
        else:
            _append(target, field, value.get("delta"))


def _parts(item: Object, array: str) -> Indexed:
    have = item.get(array)
    if not isinstance(have, Indexed):
        have = item[array] = Indexed(enumerate(sequence(have)))
    return have


def _part(item: Object, array: str, value: Object, kind: str) -> Object:
    part: Object = _parts(item, array).setdefault(_part_index(value), {})
    part.setdefault("type", kind)
    return part


def _part_index(value: Object) -> int:
    return integer(value.get("content_index")) or integer(value.get("summary_index")) or 0


def _append(target: Object, field: str, delta: Any) -> None:
    have = target.get(field)
    if not isinstance(delta, str):
        if delta is not None:
            target[field] = [*sequence(have), delta]
    elif isinstance(have, Pieces):
        have.append(delta)
    else:
        target[field] = Pieces([have, delta]) if isinstance(have, str) else Pieces([delta])
