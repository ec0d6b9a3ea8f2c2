"""POINT on the command line: a step of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead_core.errors import UsageError

if TYPE_CHECKING:
    from playhead_replay import RecordedExchange, Run, Step

SHORTEST_PREFIX = 4
"""Smallest length of a span id prefix in hex digits; fewer digits are a step number."""

LONGEST_NUMBER = 7
"""Largest length of a step number in decimal digits; more digits are a span id prefix."""

_NUMBER = re.compile(rf"[0-9]{{1,{LONGEST_NUMBER}}}\Z")
_PREFIX = re.compile(rf"[0-9a-f]{{{SHORTEST_PREFIX},16}}\Z")


@dataclass(frozen=True, slots=True)
class Point:
    """A step of a run."""

    step: Step
    exchange: RecordedExchange | None = None
    """The exchange that was named, if any."""
    snapped: str = ""
    """How the step was found, in words; empty if the point was a step itself."""


def find_point(run: Run, text: str) -> Point:
    """The step that ``text`` names in ``run``.

    A step number as shown, a span id prefix, lane and ordinal (``main#4``), ``start``, ``error``,
    ``end``. If it is not a step, the nearest step is taken and `Point.snapped` says so. `UsageError` if
    nothing has that name.
    """
    if not run.steps:
        raise UsageError(f"{run.name} has no steps", hint=f"playhead show {run.name}")
    if text == "start":
        return Point(run.steps[0])
    if text == "end":
        return Point(run.steps[-1])
    if text == "error":
        return _first_error(run)
    if "#" in text:
        return _of_exchange(run, text)
    if _NUMBER.match(text):
        step = run.step(int(text))
        if step is None:
            raise _none(run, f"{run.name} has steps 1 to {len(run.steps)}, not {int(text)}")
        return Point(step)
    if _PREFIX.match(text.lower()):
        return _of_span(run, text.lower())
    raise _none(run, f"{text!r} is no point of a run")


def _first_error(run: Run) -> Point:
    if run.errors:
        return Point(run.errors[0])
    last = run.steps[-1]
    why = f"no step of {run.name} failed; the last is step {last.number}"
    return Point(last, snapped=why)


def _of_exchange(run: Run, name: str) -> Point:
    for exchange in run.exchanges:
        if exchange.name == name:
            step = run.step_of(exchange.span_id)
            if step is not None:
                return Point(step, exchange)
            near = _nearest(run, exchange.exchange.time_ns)
            return Point(near, exchange, f"{name} belongs to no step; the nearest is step {near.number}")
    names = ", ".join(exchange.name for exchange in run.exchanges[:5])
    raise _none(run, f"{run.name} has no exchange {name}", f"it has {names}" if names else "")


def _of_span(run: Run, prefix: str) -> Point:
    found = [span for span in run.spans if span.span_id.startswith(prefix)]
    if not found:
        raise _none(run, f"no span of {run.name} begins with {prefix}")
    if len(found) > 1:
        ids = ", ".join(f"{span.span_id} ({span.name})" for span in found[:5])
        raise _none(run, f"{prefix} begins several spans of {run.name}", ids)
    step = run.step_of(found[0].span_id)
    if step is not None:
        inside = step.span is not found[0]
        why = f"{found[0].name} is a part of step {step.number}" if inside else ""
        return Point(step, snapped=why)
    near = _nearest(run, found[0].started_ns)
    return Point(near, snapped=f"{found[0].name} is no step; the nearest is step {near.number}")


def _nearest(run: Run, time_ns: int) -> Step:
    return min(run.steps, key=lambda step: abs(step.span.started_ns - time_ns))


def _none(run: Run, what: str, cause: str = "") -> UsageError:
    return UsageError(what, cause=cause, hint=f"playhead show {run.name}")
