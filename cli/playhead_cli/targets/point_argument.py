"""POINT on the command line: a step of a run, or the state at a point."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from playhead_core.errors import UsageError

if TYPE_CHECKING:
    from playhead_replay import RecordedExchange, Run, Step
    from playhead_replay.timeline import RunState
    from playhead_replay.timeline.tool_calls import ToolCallStep


SHORTEST_PREFIX = 4
"""Smallest length of a span id prefix in hex digits; fewer digits are a step number."""

LONGEST_NUMBER = 7
"""Largest length of a step number in decimal digits; more digits are a span id prefix."""

_NUMBER = re.compile(rf"[0-9]{{1,{LONGEST_NUMBER}}}\Z")
_TOOL_CALL = re.compile(rf"[0-9]{{1,{LONGEST_NUMBER}}}\.[0-9]{{1,{LONGEST_NUMBER}}}\Z")
_PREFIX = re.compile(rf"[0-9a-f]{{{SHORTEST_PREFIX},16}}\Z")


@dataclass(frozen=True, slots=True)
class Point:
    """A step of a run."""

    step: Step
    exchange: RecordedExchange | None = None
    """The exchange that was named, if any."""
    snapped: str = ""
    """A note on how the step was chosen; empty if the point named a step."""


def find_point(run: Run, text: str) -> Point:
    """Return the step that ``text`` names in ``run``.

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
    raise _none(run, f"{text!r} is not a point of a run")


def find_tool_call(run: Run, text: str) -> ToolCallStep | None:
    """Return the tool call that ``text`` names (``3.1``); None if it has another form. `UsageError`."""
    if not _TOOL_CALL.match(text):
        return None
    from playhead_replay.timeline.tool_calls import tool_calls_of

    known = tool_calls_of(run)
    for call in known:
        if call.number == text:
            return call
    calls = ", ".join(call.number for call in known[:5])
    raise _none(run, f"{run.name} has no tool call {text}", f"it has {calls}" if calls else "")


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
        of_run = run.trace_id.startswith(prefix)
        why = f"the trace id of {run.name} does: leave out the point" if of_run else ""
        raise _none(run, f"no span of {run.name} begins with {prefix}", why)
    if len(found) > 1:
        ids = ", ".join(f"{span.span_id} ({span.name})" for span in found[:5])
        raise _none(run, f"{prefix} begins several spans of {run.name}", ids)
    step = run.step_of(found[0].span_id)
    if step is not None:
        inside = step.span is not found[0]
        why = f"{found[0].name} is a part of step {step.number}" if inside else ""
        return Point(step, snapped=why)
    near = _nearest(run, found[0].started_ns)
    return Point(near, snapped=f"{found[0].name} is not a step; the nearest is step {near.number}")


def _nearest(run: Run, time_ns: int) -> Step:
    return min(run.steps, key=lambda step: abs(step.span.started_ns - time_ns))


def _none(run: Run, what: str, cause: str = "") -> UsageError:
    return UsageError(what, cause=cause, hint=f"playhead show {run.name}")


BEGIN = "0"
"""Before the first step."""

_SINCE_START = re.compile(r"\+?([0-9]{1,9}(?:\.[0-9]{1,9})?)s\Z")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
CHECKPOINT = re.compile(rf"(?:c[0-9]{{1,7}}|[0-9a-f]{{32}}|{_UUID})\Z")
"""A checkpoint: as ``playhead checkpoints`` numbers it, by its id in a store, or LangGraph's."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]")


def find_moment(run: Run, text: str) -> tuple[RunState, str]:
    """Return the state that ``text`` names in ``run``, and a note if the point is not exact.

    A point as `find_point` takes it, ``0`` (before the first step), ``c2`` (a checkpoint), ``12.5s``
    since the start, or a time such as ``2026-11-25T10:00:00+01:00``. Empty: the end. `UsageError`.
    """
    from playhead_replay.timeline import (
        checkpoint_named,
        state_after_step,
        state_at_checkpoint,
        state_at_time,
    )

    if not text:
        return state_after_step(run, len(run.steps)), ""
    if text == BEGIN:
        return state_after_step(run, 0), ""
    if CHECKPOINT.match(text):
        return state_at_checkpoint(run, checkpoint_named(run, text)), ""
    since = _SINCE_START.match(text)
    if since is not None:
        return state_at_time(run, run.started_ns + round(float(since[1]) * 1e9)), ""
    if _TIME.match(text):
        return state_at_time(run, _time_ns(text)), ""
    point = find_point(run, text)
    return state_after_step(run, point.step.number), point.snapped


def _time_ns(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
        return round(found.astimezone().timestamp() * 1e9)
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"{text!r} is not a time", hint="2026-11-25T10:00:00+01:00, or 12.5s since the start"
        ) from None
