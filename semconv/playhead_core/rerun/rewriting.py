"""Changes JSON text as little as possible: what an edit does not touch keeps its bytes.

A provider may answer a request in another way, or sign a body, where only spaces, escapes, the spelling
of numbers or the order of names have changed. So an edited body differs from the recorded one only in
the edited fields.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, cast

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)
_SCALAR = re.compile(r"[^,\]}\s]+")


class _Node(NamedTuple):
    """A value in a text: where it is, and where its members are."""

    start: int
    end: int
    fields: dict[str, tuple[int, _Node]] | None = None
    """Of an object: where the name begins, and the value; of repeated names the last."""
    items: list[_Node] | None = None


def rewritten(text: str, new: Any) -> str:
    """Return ``text``, which is JSON, with the fewest changes that make it ``new``.

    ValueError or RecursionError if ``text`` is not JSON.

    >>> rewritten('{"a" : 1.0, "b": [1,  2]}', {"a": 1.0, "b": [1, 3]})
    '{"a" : 1.0, "b": [1,  3]}'
    """
    pieces: list[tuple[int, int, str]] = []
    _change(text, _read(text, _after(text, 0)), json.loads(text), new, pieces)
    changed = text
    for begin, end, piece in sorted(pieces, reverse=True):
        changed = changed[:begin] + piece + changed[end:]
    return changed if _says(changed, new) else _written(text, new)  # a removed name may be repeated


def _says(text: str, value: Any) -> bool:
    try:
        return json.dumps(json.loads(text), sort_keys=True) == json.dumps(value, sort_keys=True)
    except ValueError:
        return False


def _change(text: str, node: _Node, old: Any, new: Any, pieces: list[tuple[int, int, str]]) -> None:
    if _written(text, old) == _written(text, new):
        return
    if isinstance(old, dict) and isinstance(new, dict) and node.fields and new:
        before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        added = [name for name in after if name not in before]
        if not (added and len(before) > len(after) - len(added)):
            for name, (begin, value) in node.fields.items():
                if name in after:
                    _change(text, value, before[name], after[name], pieces)
                else:
                    pieces.append((*_cut(text, node, begin, value.end), ""))
            comma, colon = _separators(text)
            last = max(value.end for _, value in node.fields.values())
            more = [
                f"{comma}{_written(text, name)}{colon}{_written(text, after[name])}" for name in added
            ]
            if more:
                pieces.append((last, last, "".join(more)))
            return
    if isinstance(old, list) and isinstance(new, list):
        left, right = cast("list[Any]", old), cast("list[Any]", new)
        if node.items is not None and len(left) == len(right):
            for item, one, other in zip(node.items, left, right, strict=True):
                _change(text, item, one, other, pieces)
            return
    pieces.append((node.start, node.end, _written(text, new)))


def _cut(text: str, node: _Node, begin: int, end: int) -> tuple[int, int]:
    """Return the range of a member and of the comma after it, else before it."""
    after = _after(text, end)
    if text[after] == ",":
        return begin, _after(text, after + 1)
    return max(text.rfind(",", node.start, begin), node.start + 1), end


def _separators(text: str) -> tuple[str, str]:
    spaced = re.search(r'"\s*:( ?)', text)
    return (", ", ": ") if spaced is not None and spaced[1] else (",", ":")


def _written(text: str, value: Any) -> str:
    return json.dumps(value, ensure_ascii="\\u" in text, separators=_separators(text))


def _read(text: str, at: int) -> _Node:
    sign = text[at : at + 1]
    if sign == '"':
        return _Node(at, _DECODER.raw_decode(text, at)[1])
    if sign not in ("{", "[") or not sign:
        found = _SCALAR.match(text, at)
        if found is None:
            raise ValueError(f"no JSON value at {at}")
        return _Node(at, found.end())
    fields: dict[str, tuple[int, _Node]] = {}
    items: list[_Node] = []
    begin, at = at, _after(text, at + 1)
    while text[at : at + 1] not in ("}", "]", ""):
        if sign == "{":
            name, after = _DECODER.raw_decode(text, at)
            value = _read(text, _after(text, _after(text, after) + 1))
            fields[name] = at, value
        else:
            value = _read(text, at)
            items.append(value)
        at = _after(text, value.end)
        if text[at : at + 1] == ",":
            at = _after(text, at + 1)
    return _Node(begin, at + 1, fields if sign == "{" else None, items if sign == "[" else None)


def _after(text: str, at: int) -> int:
    """Return the first place from ``at`` on that is no space."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


_LAYOUTS: tuple[dict[str, Any], ...] = ({"separators": (",", ":")}, {}, {"indent": 2}, {"indent": 4})


def document_in(value: Any) -> Any:
    """Return the object or array whose JSON ``value`` is; None if it is not a string of that kind.

    >>> document_in('{"total": 490}'), document_in("490")
    ({'total': 490}, None)
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def written_like(text: str, document: Any) -> str:
    """Return ``document`` as JSON in the layout of ``text``.

    If that is none of the usual ones, what is the same in both keeps its characters.

    >>> written_like('{"total":490}', {"total": 49})
    '{"total":49}'
    >>> written_like('{"total" :490, "tax":1.0}', {"total": 49, "tax": 1.0})
    '{"total" :49, "tax":1.0}'
    """
    held = json.loads(text)
    for layout in _LAYOUTS:
        for is_ascii in (False, True):
            if json.dumps(held, ensure_ascii=is_ascii, **layout) == text:
                return json.dumps(document, ensure_ascii=is_ascii, **layout)
    return rewritten(text, document)
