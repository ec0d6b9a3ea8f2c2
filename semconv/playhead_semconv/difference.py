"""The first difference of two values, with its place: a JSON path, a line, a byte."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from playhead_semconv import attributes as a

SIDE_CHARS = 200
"""How much of a side is kept for showing."""


REDACTED: Final = a.PLAYHEAD_REDACTED_COUNT


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two things differ first, and how each side reads there."""

    path: str
    """``$.messages[3].content``, ``line 4``, ``byte 17``, …"""
    tape: str
    now: str


def body_difference(tape: bytes, now: bytes) -> Difference | None:
    """How two bodies differ: as JSON values where both are JSON, else as text. None: they do not.

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
    return Difference(path, _shown(tape), _shown(now))


def _of_objects(tape: dict[str, Any], now: dict[str, Any], path: str) -> Difference | None:
    for key, value in tape.items():
        if key not in now:
            return Difference(f"{path}.{key}", _shown(value), "(absent)")
        found = json_difference(value, now[key], f"{path}.{key}")
        if found is not None:
            return found
    for key, value in now.items():
        if key not in tape:
            return Difference(f"{path}.{key}", "(absent)", _shown(value))
    return None


def _of_arrays(tape: list[Any], now: list[Any], path: str) -> Difference | None:
    for index, (left, right) in enumerate(zip(tape, now, strict=False)):
        found = json_difference(left, right, f"{path}[{index}]")
        if found is not None:
            return found
    if len(tape) > len(now):
        return Difference(f"{path}[{len(now)}]", _shown(tape[len(now)]), "(absent)")
    if len(now) > len(tape):
        return Difference(f"{path}[{len(tape)}]", "(absent)", _shown(now[len(tape)]))
    return None


def body_differences(tape: bytes, now: bytes) -> Iterator[Difference]:
    """All that differs in two bodies: as JSON values where both are JSON, else the first line."""
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
                yield Difference(f"{path}.{key}", _shown(left[key]), "(absent)")
            elif key not in left:
                yield Difference(f"{path}.{key}", "(absent)", _shown(right[key]))
            else:
                yield from json_differences(left[key], right[key], f"{path}.{key}")
    elif isinstance(tape, list) and isinstance(now, list):
        yield from _all_of_arrays(cast("list[Any]", tape), cast("list[Any]", now), path)
    elif isinstance(tape, str) and isinstance(now, str) and tape != now:
        left, right = _within(tape), _within(now)
        if left is None or right is None or left == right:
            yield Difference(path, _shown(tape), _shown(now))
        else:
            yield from json_differences(left, right, path)
    elif isinstance(tape, bool) is not isinstance(now, bool) or tape != now:
        yield Difference(path, _shown(tape), _shown(now))


def _within(text: str) -> Any:
    """The object or array that a text is, as the arguments of a tool are; None: it is none."""
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
                yield Difference(f"{path}[{right}]", "(absent)", _shown(now[right]))
            elif right >= to_now:
                yield Difference(f"{path}[{left}]", _shown(tape[left]), "(absent)")
            else:
                yield from json_differences(tape[left], now[right], f"{path}[{left}]")


def text_difference(tape: bytes, now: bytes) -> Difference | None:
    """The first line that differs, counted from 1; in bytes that are no text the first byte, from 0.

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
            return Difference(f"line {index + 1}", *_lines(line, other))
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
            return Difference(f"{place} {name}", _shown(left), _shown(right))
    return None


def shown(data: bytes) -> str:
    """The beginning of some bytes, as a side of a difference."""
    try:
        return data.decode()[:SIDE_CHARS] or "(empty)"
    except UnicodeDecodeError:
        return _bytes(data, 0)


def first_difference(tape: bytes, now: bytes) -> int | None:
    """Offset of the first byte that differs; the length of the shorter where one begins the other."""
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


def _lines(tape: str | None, now: str | None) -> tuple[str, str]:
    sides = [None if line is None else line.rstrip("\r\n") for line in (tape, now)]
    if sides[0] == sides[1]:  # they differ in the end of the line only
        sides = [None if line is None else repr(line) for line in (tape, now)]
    left, right = ("(absent)" if side is None else side[:SIDE_CHARS] for side in sides)
    return left, right


def _bytes(data: bytes, offset: int) -> str:
    return data[offset : offset + 16].hex(" ") or "(end)"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SIDE_CHARS else text[:SIDE_CHARS] + "…"
