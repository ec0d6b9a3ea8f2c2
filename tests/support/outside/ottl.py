"""Statements of OTTL as the Collector's transform processor runs them: the part that our files use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

CONTEXTS = ("span", "spanevent")
"""From the highest to the lowest. A statement may name its own context and those above it."""

_CALL = re.compile(r"(\w+)\((.*)\)\Z", re.DOTALL)
_PATH = re.compile(r"(\w+)\.(\w+)(?:\.string)?(?:\[\"(.+)\"\])?\Z")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_VARIABLE = re.compile(r"\$\{env:\w+:-(.*?)\}")


@dataclass
class OttlSpan:
    """A span, with the attributes of its events."""

    attributes: dict[str, str]
    events: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    trace_id: str = "1" * 32
    span_id: str = "2" * 16


def transformed(statements: Sequence[Any], span: OttlSpan) -> OttlSpan:
    """The span behind a transform processor with these ``trace_statements``.

    Consecutive statements without a context run in one, the lowest that any of them names: once for each
    event of a span if one of them names an event.
    """
    span = deepcopy(span)
    for context, group in _groups(statements):
        for event in [None] if context == "span" else span.events:
            for statement in group:
                _run(statement, span, event)
    return span


def _groups(statements: Sequence[Any]) -> Iterator[tuple[str, list[str]]]:
    flat = [one for one in statements if isinstance(one, str)]
    if flat:
        named = [context for context in CONTEXTS if any(f"{context}." in one for one in flat)]
        yield named[-1], flat
    for one in statements:
        if isinstance(one, Mapping):
            yield one["context"], one["statements"]


def _run(statement: str, span: OttlSpan, event: dict[str, str] | None) -> None:
    name, arguments = _called(statement)
    if name == "delete_matching_keys":
        target, pattern = _attributes(arguments[0], span, event), re.compile(json.loads(arguments[1]))
        for key in [key for key in target if pattern.search(key)]:
            del target[key]
    elif name == "truncate_all":
        target = _attributes(arguments[0], span, event)
        target.update({key: value[: int(arguments[1])] for key, value in target.items()})
    elif name == "set":
        path = _PATH.match(arguments[0])
        assert path is not None and path[3], statement
        _attributes(f"{path[1]}.{path[2]}", span, event)[path[3]] = _value(arguments[1], span)
    else:
        raise AssertionError(f"{name} is not known here")


def _attributes(path: str, span: OttlSpan, event: dict[str, str] | None) -> dict[str, str]:
    if path == "span.attributes":
        return span.attributes
    assert path == "spanevent.attributes" and event is not None, f"{path} is unknown in this context"
    return event


def _value(text: str, span: OttlSpan) -> str:
    if text.startswith('"'):
        return _VARIABLE.sub(lambda found: found[1], json.loads(text))
    if _CALL.match(text):
        name, (parts, separator) = _called(text)
        assert name == "Concat"
        return json.loads(separator).join(_value(one, span) for one in _split(parts[1:-1]))
    path = _PATH.match(text)
    assert path is not None and path[1] == "span", text
    return getattr(span, path[2])


def _called(text: str) -> tuple[str, list[str]]:
    found = _CALL.match(text)
    assert found is not None, text
    return found[1], _split(found[2])


def _split(text: str) -> list[str]:
    """The arguments in a list of them, which may hold strings, calls and lists."""
    parts, depth, begin = list[str](), 0, 0
    masked = _STRING.sub(lambda found: "s" * len(found[0]), text)
    for at, sign in enumerate(f"{masked},"):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and not depth:
            parts.append(text[begin:at].strip())
            begin = at + 1
    return parts
