"""States as a tape holds them: JSON in which ``{"$type": …}`` marks what is not plain JSON.

A path ignores such marks: for an object it names the attributes.

>>> state = {"order": {"$type": "object", "class": ["m", "Order"], "value": [[], {"number": 81}]}}
>>> plain(state)
{'order': {'number': 81}}
>>> edited(state, [Edit("order.number", 82)])["order"]["value"]
[[], {'number': 82}]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from playhead_core.rerun.edits import Step, applied, path_of, steps_of
from playhead_core.rerun.plans import Edit

TYPE = "$type"
"""The key of a mark."""


def plain(document: Any) -> Any:
    """Return ``document`` without marks: objects become their attributes, tuples and sets lists."""
    if isinstance(document, list):
        return [plain(one) for one in cast("list[Any]", document)]
    if isinstance(document, dict):
        fields = cast("dict[str, Any]", document)
        if TYPE in fields:
            return plain(_inside(fields)[1])
        return {name: plain(one) for name, one in fields.items()}
    return document


def edited(document: Any, edits: Iterable[Edit]) -> Any:
    """Return a copy of ``document`` with ``edits`` applied.

    Raises `UsageError` if one matches nothing.
    """
    for edit in edits:
        there = msgspec.structs.replace(edit, path=path_of(_raw(document, steps_of(edit.path))))
        document = applied(document, [there])
    return document


def at(document: Any, path: str) -> Any:
    """Return the value at ``path``, without marks.

    LookupError if there is none; `UsageError` for a bad path.
    """
    for step in steps_of(path):
        document = _through(document)[1]
        if isinstance(document, dict) and isinstance(step, str):
            document = cast("dict[str, Any]", document)[step]
        elif isinstance(document, list) and isinstance(step, int):
            document = cast("list[Any]", document)[step]
        else:
            raise LookupError(step)
    return plain(document)


def unkept_in(document: Any, path: str = "") -> Iterator[str]:
    """Yield what of a state could not be kept: its path, and the class of what is there.

    >>> list(unkept_in({"a": [1, {"b": {"$type": "unkept", "value": "socket.socket"}}]}))
    ['a[1].b: socket.socket']
    """
    if isinstance(document, dict):
        fields = cast("dict[str, Any]", document)
        if fields.get(TYPE) == "unkept":
            yield f"{path or 'all of it'}: {fields.get('value')}"
        elif TYPE in fields:
            yield from unkept_in(_inside(fields)[1], path)
        else:
            for name, one in fields.items():
                yield from unkept_in(one, f"{path}.{name}" if path else name)
    elif isinstance(document, list):
        for at, one in enumerate(cast("list[Any]", document)):
            yield from unkept_in(one, f"{path}[{at}]")


def _raw(document: Any, steps: list[Step]) -> list[Step]:
    """Return the path with the marks on its way; unchanged from the first step that matches nothing."""
    found: list[Step] = []
    for step in steps:
        inside, document = _through(document)
        found += [*inside, step]
        if isinstance(document, dict) and isinstance(step, str):
            document = cast("dict[str, Any]", document).get(step)
        elif isinstance(document, list) and isinstance(step, int):
            items = cast("list[Any]", document)
            document = items[step] if -len(items) <= step < len(items) else None
        else:
            document = None
    return found


def _through(document: Any) -> tuple[list[Step], Any]:
    """Unwrap the marks around a value; returns the steps to it, and the value."""
    way: list[Step] = []
    within: Any = document
    while isinstance(within, dict) and TYPE in within:
        inside, within = _inside(cast("dict[str, Any]", within))
        way += inside
    return way, cast("Any", within)


def _inside(marked: dict[str, Any]) -> tuple[list[Step], Any]:
    value: Any = marked.get("value")
    items = cast("list[Any]", value if isinstance(value, list) else [])
    if marked[TYPE] != "object" or len(items) < 2:
        return ["value"], cast("Any", value)
    way: list[Step] = ["value", 1]
    state: Any = items[1]
    if isinstance(state, dict):
        fields = cast("dict[str, Any]", state)
        if "__dict__" in fields:  # of pydantic
            return [*way, "__dict__"], fields["__dict__"]
        if fields.get(TYPE) == "tuple" and len(fields["value"]) == 2:  # of slots, after a __dict__
            return [*way, "value", 1], fields["value"][1]
    return way, cast("Any", state)
