"""Say where the arguments of a call come from: of a tool call in an answer, of a tool, of a request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import parse_qsl

from playhead_core.errors import TapeError, UsageError
from playhead_genai.messages import ToolCall
from playhead_genai.readable_text import named_arguments, text_of
from playhead_replay.derived.value_origins import Source, ValueOrigin, origins_of, sources_of
from playhead_replay.run.run import Run
from playhead_replay.run.steps import Step
from playhead_replay.timeline.tool_calls import tool_calls_of
from playhead_semconv import attributes as a

MOST_VALUES: Final = 100
MOST_PARTS: Final = 20
"""Parts of a text that are looked for if nothing holds all of it."""

_TELLING: Final = re.compile(r"[^\s\"'<>(),;]*[\d@/][^\s\"'<>(),;]*")
SHORTEST_PART: Final = 4


@dataclass(frozen=True, slots=True)
class BlamedValue:
    """A value and everything that held it before."""

    path: str
    """In the arguments: ``to``, ``items.0.id``; empty for arguments that are a plain value."""
    value: str
    is_part: bool
    """Whether it is only a part of the argument, all of which is held by nothing."""
    origins: list[ValueOrigin]
    """The earliest first; empty: the model wrote it, or the program made it in a way not recorded."""
    runs: list[str] | None = None
    """Names of the other runs that hold it, the newest first; None if they were not asked for."""


@dataclass(frozen=True, slots=True)
class BlamedCall:
    """A call and where its arguments come from."""

    place: str
    """``3.1``; ``4`` for a step that is a tool or a request itself."""
    name: str
    values: list[BlamedValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Where the arguments of the calls at a step come from."""

    schema_version: int = 1
    run: str
    calls: list[BlamedCall]


def blame(run: Run, step: Step, place: int | None = None, path: str = "", text: str = "") -> Blame:
    """Return where values of a step come from.

    ``place``: only of this tool call of the answer, from 1. ``path``: only of this argument and those
    below it. ``text``: of this text instead of arguments. `UsageError` if the step has no such values.
    """
    made = {number: call for number, call in _calls(run, step) if place in (None, number)}
    before_ns = step.span.ended_ns if made or text else step.span.started_ns
    if before_ns is None:
        before_ns = max((one.time_ns for one in run.tape.facts()), default=step.span.started_ns) + 1
    wanted = (
        {str(step.number): (step.span.name, text)}
        if text
        else {
            **{f"{step.number}.{number}": (call.name, call.arguments) for number, call in made.items()},
            **({} if made else _own(run, step)),
        }
    )
    if not wanted:
        raise UsageError(
            f"step {step.number} of {run.name} calls nothing with arguments",
            hint=f"playhead blame {run.name}:{step.number} --value TEXT",
        )
    sources = sources_of(run, tool_calls_of(run))
    found = [
        BlamedCall(at, name, _blamed(sources, list(_leaves(arguments, path)), before_ns))
        for at, (name, arguments) in wanted.items()
    ]
    if not any(call.values for call in found):
        names = ", ".join(of for _, (_, given) in wanted.items() for of, _ in _leaves(given, ""))
        raise UsageError(
            f"step {step.number} of {run.name} has no argument {path}",
            cause=f"it has {names}" if names else "",
        )
    return Blame(run=run.name, calls=found)


def _blamed(sources: list[Source], values: list[tuple[str, Any]], before_ns: int) -> list[BlamedValue]:
    held = origins_of(sources, (value for _, value in values), before_ns)
    told = [
        BlamedValue(path, text_of(value), False, origins)
        for (path, value), origins in zip(values, held, strict=True)
    ]
    parts = [(one.path, part) for one in told if not one.origins for part in _parts(one.value)]
    held = origins_of(sources, (part for _, part in parts), before_ns)
    of_parts: dict[str, list[BlamedValue]] = {}
    for (path, part), origins in zip(parts, held, strict=True):
        if origins:
            of_parts.setdefault(path, []).append(BlamedValue(path, part, True, origins))
    return [one for value in told for one in (value, *of_parts.get(value.path, ()))]


def _calls(run: Run, step: Step) -> Iterator[tuple[int, ToolCall]]:
    if step in run.calls:
        output = run.messages(step).output
        parts = (part for message in output for part in message.parts if isinstance(part, ToolCall))
        yield from enumerate(parts, start=1)


def _own(run: Run, step: Step) -> dict[str, tuple[str, Any]]:
    """Return the arguments of a step that is a tool or a request itself."""
    at = step.span.attributes
    arguments = at.get(a.GEN_AI_TOOL_CALL_ARGUMENTS)
    if arguments is None and (exchanges := run.exchanges_of(step)):
        try:
            body = exchanges[-1].request.decode(errors="replace")
        except TapeError:  # its content is not recorded
            body = ""
        query = dict(parse_qsl(step.span.url.query))
        arguments = query | (named_arguments(body) or dict(parse_qsl(body))) or body
    return {str(step.number): (step.span.name, arguments)} if arguments else {}


def _leaves(value: Any, wanted: str) -> Iterator[tuple[str, Any]]:
    """Yield the values in arguments that are neither empty nor true or false, by path."""
    named = named_arguments(value)
    todo: list[tuple[str, Any]] = [("", value if named is None else named)]
    count = 0
    while todo and count < MOST_VALUES:
        path, one = todo.pop()
        if isinstance(one, Mapping | list):
            held = cast("Mapping[Any, Any] | list[Any]", one)
            pairs = held.items() if isinstance(held, Mapping) else enumerate(held)
            todo += reversed([(f"{path}.{name}".lstrip("."), part) for name, part in pairs])
        elif not isinstance(one, bool) and one not in (None, "") and _is_below(path, wanted):
            count += 1
            yield path, one


def _is_below(path: str, wanted: str) -> bool:
    return not wanted or f"{path}.".startswith(f"{wanted}.")


def _parts(value: Any) -> list[str]:
    """Return what tells most in a text of several words: addresses, numbers, paths."""
    if not isinstance(value, str) or len(value.split()) < 2:
        return []
    found = (part.strip(".:!?") for part in _TELLING.findall(value))
    return list(dict.fromkeys(part for part in found if len(part) >= SHORTEST_PART))[:MOST_PARTS]
