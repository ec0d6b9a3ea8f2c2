"""Joins the deltas of a stream into the body that a call without a stream would have had.

Strings are kept as pieces and joined once at the end, so that a long answer takes linear time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from playhead_genai.providers.reading import Object


class Pieces(list[str]):
    """A string that is still growing."""


class Indexed(dict[int, Any]):
    """An array whose items are identified by their ``index``."""


_REPLACED = frozenset(
    {"index", "type", "id", "role", "object", "model", "format", "name", "toolUseId", "call_id"}
)
"""Strings that a later delta repeats instead of continuing."""


def merge(target: Object, delta: Object) -> None:
    """Add ``delta`` to ``target``: strings are appended, objects merged, arrays extended."""
    for name, value in delta.items():
        target[name] = _merged(target.get(name), value, append=name not in _REPLACED)


def _merged(have: Any, value: Any, append: bool = True) -> Any:
    if value is None:
        return have
    if isinstance(value, str):
        if not append:
            return value or have
        if isinstance(have, Pieces):
            have.append(value)
            return have
        if isinstance(have, list):  # an array of parts that goes on with text
            return _extended(cast(list[Any], have), [value])
        return Pieces([value])
    if isinstance(value, dict):
        target: Object = cast(Object, have) if isinstance(have, dict) else {}
        merge(target, cast(Object, value))
        return target
    if isinstance(value, list):
        return _extended(have, cast(list[Any], value))
    return value


def _extended(have: Any, items: list[Any]) -> Any:
    if have is None and items and all(_index(item) is not None for item in items):
        have = Indexed()
    if isinstance(have, Indexed):
        for item in items:
            index = _index(item)
            if index is None:
                index = max(have, default=-1) + 1
            have[index] = _merged(have.get(index), item)
        return have
    target: list[Any] = []
    if isinstance(have, Pieces):
        target = [have] if any(have) else []  # a stream may begin with an empty text
    elif isinstance(have, list):
        target = cast(list[Any], have)
    for item in items:
        last = target[-1] if target else None
        if isinstance(item, str) and isinstance(last, Pieces):
            last.append(item)
        elif isinstance(item, str):
            target.append(Pieces([item]))
        elif _continues(last, item):
            merge(cast(Object, last), cast(Object, item))
        else:
            target.append(_merged(None, item) if _kind(item) in _GROWING else item)
    return target


_GROWING = frozenset({"thinking", "text"})
"""Types of parts that the next delta may continue."""


def _kind(item: Any) -> Any:
    kind = cast(Object, item).get("type") if isinstance(item, dict) else None
    return kind if isinstance(kind, str) else None


def _continues(last: Any, item: Any) -> bool:
    kind = _kind(item)
    return kind in _GROWING and kind == _kind(last)


def _index(item: Any) -> int | None:
    index = cast(Object, item).get("index") if isinstance(item, dict) else None
    return index if isinstance(index, int) else None


def settled(value: Any) -> Any:
    """Return ``value`` with its pieces joined and its indexed arrays in order."""
    if isinstance(value, Pieces):
        return "".join(value)
    if isinstance(value, Indexed):
        return [settled(value[index]) for index in sorted(value)]
    if isinstance(value, dict):
        return {name: settled(item) for name, item in cast(Object, value).items()}
    if isinstance(value, list):
        return [settled(item) for item in cast(list[Any], value)]
    return value


def updated(have: Object, new: Object, counts: Iterable[str] = ()) -> Object:
    """Return ``have`` with the fields of ``new``. Counts of usage are not replaced by 0 or nothing.

    Some servers end a stream with a usage that is empty, after one that is not. ``counts``: fields that
    are counts themselves.
    """
    merged = have | new
    for name in _USAGES:
        if isinstance(have.get(name), dict) and name in new:
            merged[name] = updated_counts(cast(Object, have[name]), new[name])
    for name in counts:
        merged |= {name: have[name]} if have.get(name) and not new.get(name) else {}
    return merged


_USAGES = (
    "usage",
    "usageMetadata",
    "usage_metadata",
    "x_groq",
    "amazon-bedrock-invocationMetrics",
)


def updated_counts(have: Object, new: Any) -> Object:
    """Return the counts ``have`` with those of ``new`` that are not 0 or nothing."""
    merged = dict(have)
    for name, value in cast(Object, new).items() if isinstance(new, dict) else ():
        before = have.get(name)
        if isinstance(before, dict):
            merged[name] = updated_counts(cast(Object, before), value)
        elif value or not before:
            merged[name] = value
    return merged


class Blocks(dict[int, Object]):
    """The blocks of a stream, by position: the ``index`` that the server gives, if it tells them apart.

    Some servers leave the index out, or give all blocks the same. Then a block follows the last one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._at: dict[int | None, int] = {}
        self._ended: set[int] = set()

    def begin(self, index: int | None, block: Object, identity: str | None = None) -> None:
        """A block begins; ``identity``: of a tool call."""
        have = self._at.get(index)
        position = len(self) if index is None else index
        if position in self and have is not None:
            same = position not in self._ended and self.get(have, {}).get("id") == identity
            position = have if same else max(self) + 1
        elif position in self:
            position = max(self) + 1
        self._at[index] = position
        self[position] = block

    def at(self, index: int | None) -> int:
        """Return the position of the block that goes on."""
        if index is None:
            return self._at.get(None, max(self, default=0))
        return self._at.get(index, index)

    def end(self, index: int | None) -> None:
        """A block ends: another one with its index is a new one."""
        self._ended.add(self.at(index))
