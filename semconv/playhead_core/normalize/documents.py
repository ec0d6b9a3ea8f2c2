"""Bodies as trees of leaves: JSON, forms and query strings, and everything else as one text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, NoReturn, cast
from urllib.parse import unquote, unquote_plus

DEEPEST: Final = 200
"""Levels of nesting; a document with more is not compared."""

_FORM = re.compile(r"[^\s\"'<>{}&=]{1,256}=[^\s\"'<>{}]*")
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
_DELIMITERS = re.compile(r"([/?&=#; ])")


class Absent(Enum):
    """Stands for a leaf that one side does not have, or that is not compared."""

    ABSENT = "(absent)"
    DEEP = "(nested too deep)"


class Number(str):
    """A number of a JSON document that is not an integer, as it is written."""

    __slots__ = ()


_LEAVES: Final = (str, int, Number, bool, type(None))


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed body. ``value``: for JSON the value, with a `Number` for each float; else a text."""

    kind: Literal["json", "form", "text"]
    value: Any


class LeafPath(NamedTuple):
    """The path of a leaf from the root."""

    above: LeafPath | None
    step: str | int

    def __str__(self) -> str:
        steps: list[str] = []
        place: LeafPath | None = self
        while place is not None:
            step = place.step
            steps.append(f"[{step}]" if isinstance(step, int) else f".{step[:80]}")
            place = place.above
        return "$" + "".join(reversed(steps))


class Unequal(NamedTuple):
    """Two leaves that differ; `Absent` if a side has none."""

    place: LeafPath | None
    recorded: Any
    now: Any

    @property
    def path(self) -> str:
        """The place as a JSON path."""
        return "$" if self.place is None else str(self.place)


def document(body: bytes) -> Document:
    """Parse ``body``. Never fails: what is neither JSON nor a form is a text.

    A JSON object with a duplicate key is a text, because a reader sees only one of the two values.
    """
    start = body[:64].lstrip()[:1]
    if start in (b"{", b"["):
        try:
            return Document("json", _JSON.decode(body.decode()))
        except (ValueError, RecursionError):
            pass
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = body.decode("latin-1")
    if ("%" in text or "+" in text) and _FORM.fullmatch(text) and _ESCAPED.search(text):
        return Document("form", text)
    return Document("text", text)


def unequal(recorded: Document, now: Document) -> Iterator[Unequal]:
    """Yield the leaves that differ, in order of the current document, and all structural differences.

    Leaves are texts, numbers, true, false, null; also names of object members that one side does not
    have, in their order.
    """
    if recorded.kind != now.kind:
        yield Unequal(None, recorded.kind, now.kind)
    elif now.kind != "json":
        if recorded.value != now.value:
            yield Unequal(None, recorded.value, now.value)
    else:
        yield from _of_json(recorded.value, now.value)


def pieces(text: str) -> list[str]:
    """Split a URL, a query string or a form at its delimiters; every second piece is a delimiter.

    >>> pieces("GET /a%20b?c=%26")
    ['GET', ' ', '', '/', 'a%20b', '?', 'c', '=', '%26']
    """
    return _DELIMITERS.split(text)


def decoded(piece: str, *, in_query: bool) -> str:
    """Decode a piece. After the question mark, and in forms, a plus sign is a space."""
    return unquote_plus(piece) if in_query else unquote(piece)


def is_encoded(text: str) -> bool:
    """Whether a URL contains anything that `decoded` changes."""
    return "%" in text or "+" in text


def _of_json(recorded: Any, now: Any) -> Iterator[Unequal]:
    left: list[tuple[LeafPath | None, int, Any, Any]] = [(None, 0, recorded, now)]
    while left:
        item = left.pop()
        place, depth = item[:2]
        one: Any = item[2]
        other: Any = item[3]
        if depth > DEEPEST:
            yield Unequal(place, Absent.DEEP, Absent.DEEP)
        elif isinstance(one, dict) and isinstance(other, dict):
            sides = cast("tuple[dict[str, Any], dict[str, Any]]", (one, other))
            yield from _names(left, place, depth + 1, *sides)
        elif isinstance(one, list) and isinstance(other, list):
            arrays = cast("tuple[list[Any], list[Any]]", (one, other))
            shared = min(len(arrays[0]), len(arrays[1]))
            if len(arrays[0]) != len(arrays[1]):
                one = arrays[0][shared] if len(arrays[0]) > shared else Absent.ABSENT
                other = arrays[1][shared] if len(arrays[1]) > shared else Absent.ABSENT
                left.append((LeafPath(place, shared), depth, one, other))
            for index in range(shared - 1, -1, -1):
                one, other = arrays[0][index], arrays[1][index]
                if one is not other and not (type(one) is type(other) in _LEAVES and one == other):
                    left.append((LeafPath(place, index), depth + 1, one, other))
        elif not _same(one, other):
            yield Unequal(place, one, other)


def _names(
    left: list[tuple[LeafPath | None, int, Any, Any]],
    place: LeafPath | None,
    depth: int,
    recorded: dict[str, Any],
    now: dict[str, Any],
) -> Iterator[Unequal]:
    inner: list[tuple[LeafPath | None, int, Any, Any]] = []
    gone = [name for name in recorded if name not in now] if recorded.keys() != now.keys() else []
    unmatched = iter(gone)
    for name, value in now.items():
        known = name
        if name not in recorded:
            known = next(unmatched, None)
            if known is None:
                yield Unequal(LeafPath(place, name), Absent.ABSENT, value)
                return
            yield Unequal(LeafPath(place, name), known, name)
        one = recorded[known]
        if one is not value and not (type(one) is type(value) in _LEAVES and one == value):
            inner.append((LeafPath(place, name), depth, one, value))
    known = next(unmatched, None)
    if known is not None:
        yield Unequal(LeafPath(place, known), recorded[known], Absent.ABSENT)
        return
    left.extend(reversed(inner))


def _same(recorded: Any, now: Any) -> bool:
    if type(recorded) is type(now) is not Number:
        return recorded == now
    if not (is_number(recorded) and is_number(now)):
        return False
    try:
        return float(recorded) == float(now)
    except OverflowError:
        return False


def is_number(value: Any) -> bool:
    """Whether a leaf of a JSON document is a number."""
    return type(value) is int or type(value) is Number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name twice")
    return made


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


_JSON: Final = json.JSONDecoder(object_pairs_hook=_object, parse_float=Number, parse_constant=_constant)


_BOUNDARY = re.compile(rb"\A--([^\r\n]{8,70})\r\n")


def with_fixed_boundary(body: bytes) -> bytes:
    """Return a multipart body with a fixed boundary, since boundaries are random; others unchanged."""
    found = _BOUNDARY.match(body)
    return body if found is None else body.replace(found[1], b"boundary")
