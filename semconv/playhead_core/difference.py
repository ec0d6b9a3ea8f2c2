"""The first difference of two values, with its place: a JSON path, a line, a byte."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, AnyStr, Final, cast

from playhead_semconv import attributes as a

SIDE_CHARS = 200
"""Longest part of a side that is shown."""

BEFORE_CHARS = 40
"""Equal characters that are shown before the first difference of two long sides."""

_ABSENT: Final = object()

REDACTED: Final = a.PLAYHEAD_REDACTED_COUNT


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference of two values: its path, and both sides."""

    path: str
    """``$.messages[3].content``, ``line 4``, ``byte 17``, …"""
    tape: str
    now: str
    identity: int = field(default=0, compare=False, repr=False, kw_only=True)
    """Equal for equal whole sides, of which ``tape`` and ``now`` may be parts; 0: these are whole."""


def body_difference(tape: bytes, now: bytes) -> Difference | None:
    """How two bodies differ: as JSON values if both are JSON, else as text. None: they are equal.

    >>> body_difference(b'{"a": [1, 2]}', b'{"a":[1,3]}')
    Difference(path='$.a[1]', tape='2', now='3')
    >>> body_difference(b'{"a": 1}', b'{"a":1}') is None
    True
    """
    if tape == now:
        return None
    try:
        left, right = json.loads(tape), json.loads(now)
    except (ValueError, RecursionError):
        return text_difference(tape, now)
    return json_difference(left, right)


def json_difference(tape: Any, now: Any, path: str = "$") -> Difference | None:
    """The first difference of two JSON values, depth first, in the order of the tape's keys."""
    if isinstance(tape, dict) and isinstance(now, dict):
        return _of_objects(cast("dict[str, Any]", tape), cast("dict[str, Any]", now), path)
    if isinstance(tape, list) and isinstance(now, list):
        return _of_arrays(cast("list[Any]", tape), cast("list[Any]", now), path)
    if isinstance(tape, bool) is isinstance(now, bool) and tape == now:
        return None
    return _between(path, tape, now)


def _of_objects(tape: dict[str, Any], now: dict[str, Any], path: str) -> Difference | None:
    for key, value in tape.items():
        if key not in now:
            return _between(f"{path}.{key}", value, _ABSENT)
        found = json_difference(value, now[key], f"{path}.{key}")
        if found is not None:
            return found
    for key, value in now.items():
        if key not in tape:
            return _between(f"{path}.{key}", _ABSENT, value)
    return None


def _of_arrays(tape: list[Any], now: list[Any], path: str) -> Difference | None:
    for index, (left, right) in enumerate(zip(tape, now, strict=False)):
        found = json_difference(left, right, f"{path}[{index}]")
        if found is not None:
            return found
    if len(tape) > len(now):
        return _between(f"{path}[{len(now)}]", tape[len(now)], _ABSENT)
    if len(now) > len(tape):
        return _between(f"{path}[{len(tape)}]", _ABSENT, now[len(tape)])
    return None


def body_differences(tape: bytes, now: bytes) -> Iterator[Difference]:
    """All that differs in two bodies: as JSON values if both are JSON, else the first line."""
    if tape == now:
        return
    try:
        left, right = json.loads(tape), json.loads(now)
    except (ValueError, RecursionError):
        found = text_difference(tape, now)
        if found is not None:
            yield found
        return
    yield from json_differences(left, right)


def json_differences(tape: Any, now: Any, path: str = "$") -> Iterator[Difference]:
    """All differences of two JSON values, texts that hold such values among them.

    An element that an array has more is one difference.

    >>> [str(one.path) for one in json_differences({"a": [1, 2, 3], "b": 1}, {"a": [2, 3], "b": 2})]
    ['$.a[0]', '$.b']
    """
    if isinstance(tape, dict) and isinstance(now, dict):
        left, right = cast("dict[str, Any]", tape), cast("dict[str, Any]", now)
        for key in dict.fromkeys([*left, *right]):
            if key not in right:
                yield _between(f"{path}.{key}", left[key], _ABSENT)
            elif key not in left:
                yield _between(f"{path}.{key}", _ABSENT, right[key])
            else:
                yield from json_differences(left[key], right[key], f"{path}.{key}")
    elif isinstance(tape, list) and isinstance(now, list):
        yield from _all_of_arrays(cast("list[Any]", tape), cast("list[Any]", now), path)
    elif isinstance(tape, str) and isinstance(now, str) and tape != now:
        left, right = _within(tape), _within(now)
        if left is None or right is None or left == right:
            yield _between(path, tape, now)
        else:
            yield from json_differences(left, right, path)
    elif isinstance(tape, bool) is not isinstance(now, bool) or tape != now:
        yield _between(path, tape, now)


def _within(text: str) -> Any:
    """Return the object or array in a JSON text, such as the arguments of a tool; else None."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _all_of_arrays(tape: list[Any], now: list[Any], path: str) -> Iterator[Difference]:
    texts = [[json.dumps(one, sort_keys=True) for one in side] for side in (tape, now)]
    if texts[0] == texts[1]:
        return
    matcher = difflib.SequenceMatcher(None, texts[0], texts[1], autojunk=False)
    for what, from_tape, to_tape, from_now, to_now in matcher.get_opcodes():
        if what == "equal":
            continue
        for index in range(max(to_tape - from_tape, to_now - from_now)):
            left, right = from_tape + index, from_now + index
            if left >= to_tape:
                yield _between(f"{path}[{right}]", _ABSENT, now[right])
            elif right >= to_now:
                yield _between(f"{path}[{left}]", tape[left], _ABSENT)
            else:
                yield from json_differences(tape[left], now[right], f"{path}[{left}]")


def text_difference(tape: bytes, now: bytes) -> Difference | None:
    """The first line that differs, counted from 1; in binary data the first byte, from 0.

    >>> text_difference(b"one\\ntwo\\n", b"one\\n2\\n")
    Difference(path='line 2', tape='two', now='2')
    """
    offset = first_difference(tape, now)
    if offset is None:
        return None
    try:
        left, right = tape.decode(), now.decode()
    except UnicodeDecodeError:
        return Difference(f"byte {offset}", _bytes(tape, offset), _bytes(now, offset))
    lines, others = left.splitlines(keepends=True), right.splitlines(keepends=True)
    for index in range(max(len(lines), len(others))):
        line = lines[index] if index < len(lines) else None
        other = others[index] if index < len(others) else None
        if line != other:
            return _lines(f"line {index + 1}", line, other)
    return None


def message_difference(
    number: int, tape: tuple[bytes, Mapping[str, Any]], now: tuple[bytes, Mapping[str, Any]]
) -> Difference | None:
    """How two messages differ, each its bytes and its attributes. ``number``: theirs, from 0.

    >>> message_difference(0, (b"a", {}), (b"b", {}))
    Difference(path='message 1 line 1', tape='a', now='b')
    """
    place = f"message {number + 1}"
    found = body_difference(tape[0], now[0])
    if found is not None:
        return Difference(f"{place} {found.path}", found.tape, found.now)
    for name in sorted({*tape[1], *now[1]} - {REDACTED}):
        left, right = tape[1].get(name), now[1].get(name)
        if left != right:
            return _between(f"{place} {name}", left, right)
    return None


def shown(data: bytes) -> str:
    """The beginning of some bytes, as a side of a difference."""
    try:
        return data.decode()[:SIDE_CHARS] or "(empty)"
    except UnicodeDecodeError:
        return _bytes(data, 0)


def first_difference(tape: AnyStr, now: AnyStr) -> int | None:
    """Offset of the first byte or character that differs; the length of the shorter if one begins the
    other."""
    if tape == now:
        return None
    low, high = 0, min(len(tape), len(now))
    while low < high:
        middle = (low + high + 1) // 2
        if tape[:middle] == now[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _lines(path: str, tape: str | None, now: str | None) -> Difference:
    sides = [None if line is None else line.rstrip("\r\n") for line in (tape, now)]
    if sides[0] == sides[1]:  # they differ in the end of the line only
        sides = [None if line is None else repr(line) for line in (tape, now)]
    left, right = ("(absent)" if side is None else side for side in sides)
    return _cut(path, left, right)


def _between(path: str, tape: Any, now: Any) -> Difference:
    """The difference of two values, as JSON, of which one may be absent."""
    left, right = (
        "(absent)" if side is _ABSENT else json.dumps(side, ensure_ascii=False) for side in (tape, now)
    )
    return _cut(path, left, right)


def _cut(path: str, tape: str, now: str) -> Difference:
    """The difference of two texts: of long ones the part where they differ first."""
    if max(len(tape), len(now)) <= SIDE_CHARS:
        return Difference(path, tape, now)
    same = first_difference(tape, now) or 0
    start = 0 if same < SIDE_CHARS // 2 else same - BEFORE_CHARS
    left, right = (
        ("…" if start else "")
        + side[start : start + SIDE_CHARS]
        + ("…" if len(side) > start + SIDE_CHARS else "")
        for side in (tape, now)
    )
    return Difference(path, left, right, identity=hash((tape, now)))


def _bytes(data: bytes, offset: int) -> str:
    return data[offset : offset + 16].hex(" ") or "(end)"
