"""Joins the deltas of streamed tool calls, also those of servers that are only compatible with OpenAI.

OpenAI gives each delta the index of its call, and id and name once. Other servers leave the index out,
give all calls the same, or repeat the name. So a call begins with a new id, or, without an id, with a
name where the call before has its own and whole arguments; every other delta goes on with the call of
its index, or with the last one.
"""

from __future__ import annotations

from typing import Any

from playhead_genai.providers.merging import merge, settled
from playhead_genai.providers.reading import Object, integer, mapping, parse, sequence, text


class ToolCalls(list[Object]):
    """The calls so far, in the order of their indexes."""

    def __init__(self) -> None:
        super().__init__()
        self._at: dict[int | None, Object] = {}
        """The last call of each index; of None, the last call."""

    def add(self, deltas: Any) -> None:
        """Add the deltas of one event."""
        for item in sequence(deltas):
            delta = mapping(item)
            index = integer(delta.get("index"))
            call = self._continued(delta, index)
            if call is None:
                call = Object()
                self.insert(self._place(index), call)
            self._at[index] = self._at[None] = call
            merge(call, delta)

    def _continued(self, delta: Object, index: int | None) -> Object | None:
        """Return the call that a delta goes on with; None: it begins a call."""
        identity, name = text(delta.get("id")), _field(delta, "name")
        if identity:
            for call in self:
                if call.get("id") == identity:
                    return call
        have = self._at.get(index)
        if have is None:
            return None
        if identity and text(have.get("id")):
            unnamed = not name and index is not None and not _is_whole(have)
            return have if unnamed else None
        if name and (before := _field(have, "name")):
            begins = name != before or (_is_whole(have) and _field(delta, "arguments"))
            return None if begins else have
        return have

    def _place(self, index: int | None) -> int:
        if index is None:
            return len(self)
        later = (at for at, call in enumerate(self) if (integer(call.get("index")) or 0) > index)
        return next(later, len(self))


def _field(call: Object, name: str) -> Any:
    fields = mapping(call.get("function")) or mapping(call.get("custom"))
    return fields.get(name)


def _is_whole(call: Object) -> bool:
    """Whether the arguments of a call are complete JSON."""
    arguments = settled(_field(call, "arguments"))
    if not isinstance(arguments, str):
        return arguments is not None
    try:
        parse(arguments.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True
