"""Reads files of other programs within bounds: JSON, JSON lines and YAML.

All are hostile. A file is bounded in bytes, in objects and in depth. YAML makes text, numbers, bytes,
lists and objects only. Its aliases stay references: one that is repeated a billion times costs nothing
as long as readers accept text where they expect text.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import yaml

from playhead_core.errors import CorruptTape, TooLarge
from playhead_genai.other_tools.values import objects_in

MOST_BYTES = 512 << 20
"""Largest file."""
MOST_PARTS = 4 << 20
"""Most objects and lists in a document, which take some hundred bytes each."""
MOST_YAML_BYTES = 64 << 20
DEEPEST = 60
"""Levels of a YAML document; its parser recurses in C."""
SMALLER = "export fewer traces to a file, or write one trace a line (JSON lines)"

_YAML: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_YAML):  # PyYAML has no types
    """Constructs plain values; vcrpy's older tags for text and tuples are plain values, too."""


for _tag in ("str", "unicode"):
    _Loader.add_constructor(f"tag:yaml.org,2002:python/{_tag}", _Loader.construct_yaml_str)
_Loader.add_constructor("tag:yaml.org,2002:python/tuple", _Loader.construct_yaml_seq)


def parsed(data: bytes, name: str) -> Any:
    """Return the value of a document: JSON, JSON lines as a list, or YAML. `CorruptTape`, `TooLarge`."""
    if len(data) > MOST_BYTES:
        raise TooLarge(f"{name} is larger than {MOST_BYTES >> 20} MiB", hint=SMALLER)
    start = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start not in (b"{", b"["):
        return _yaml(data, name)
    if data.count(b"{") + data.count(b"[") > MOST_PARTS:
        raise TooLarge(f"{name} has more than {MOST_PARTS} objects and lists", hint=SMALLER)
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise CorruptTape(f"{name} is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        lines = list(_lines(data))
        if len(lines) > 1 and None not in lines:
            return lines
        raise CorruptTape(f"{name} is damaged: {problem}") from None


def _lines(data: bytes) -> Iterator[Any]:
    """The values of JSON lines; None for a line that is none, at which it stops."""
    for line in data.splitlines():
        if line.strip():
            try:
                yield msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                yield None
                return


def _yaml(data: bytes, name: str) -> Any:
    if len(data) > MOST_YAML_BYTES:
        raise TooLarge(f"{name} is larger than {MOST_YAML_BYTES >> 20} MiB of YAML", hint=SMALLER)
    depth = parts = 0
    try:
        events = cast("Iterator[Any]", yaml.parse(data, _YAML))
        for event in events:
            if isinstance(event, yaml.CollectionStartEvent):
                depth, parts = depth + 1, parts + 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > DEEPEST or parts > MOST_PARTS:
                raise CorruptTape(f"{name} is nested too deeply, or has too many parts")
        return yaml.load(data, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        said = " ".join(str(problem).split())[:300]
        raise CorruptTape(f"{name} is neither JSON nor plain YAML: {said}") from None


def items_of(document: Any, *names: str) -> list[dict[str, Any]]:
    """Return the objects in a list, or in the list under one of ``names`` (``data`` as APIs page it).

    A single object is a list of one.

    >>> items_of({"data": [{"id": 1}], "meta": {}}), items_of({"id": 1})
    ([{'id': 1}], [{'id': 1}])
    """
    if isinstance(document, dict):
        value = cast("dict[str, Any]", document)
        inner = next((value[one] for one in ("data", *names) if isinstance(value.get(one), list)), None)
        document = [value] if inner is None else inner
    return objects_in({"items": document}, "items")


def text(holder: dict[str, Any], *names: str) -> str:
    """Return the first text or number under ``names``; empty if there is none."""
    for name in names:
        value = holder.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
    return ""


def ns_of(value: Any) -> int:
    """Return a time in nanoseconds since the epoch: ISO 8601, or a number of s, ms, µs or ns.

    0 if it is none. Numbers are told apart by their size.

    >>> ns_of("1970-01-01T00:00:01Z"), ns_of(1_700_000_000), ns_of("1700000000000")
    (1000000000, 1700000000000000000, 1700000000000000000)
    """
    if isinstance(value, datetime):
        when = value
    elif isinstance(value, str) and not value.replace(".", "", 1).isdigit():
        try:
            when = datetime.fromisoformat(value.strip())
        except ValueError:
            return 0
    else:
        return _ns_of_number(value)
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    since = when - datetime(1970, 1, 1, tzinfo=UTC)
    return max((since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000, 0)


def _ns_of_number(value: Any) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    if isinstance(value, bool) or not 0 < number < 1 << 63:
        return 0
    factor = next(
        by for top, by in ((1e11, 10**9), (1e14, 10**6), (1e17, 1000), (1e20, 1)) if number < top
    )
    return min(int(number * factor) if number % 1 else int(number) * factor, (1 << 63) - 1)
