"""A moment of a run on the command line: a POINT, a time since its start, or a time of day."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from playhead_cli.targets.point_argument import find_point
from playhead_core.errors import UsageError

if TYPE_CHECKING:
    from playhead_replay import Run
    from playhead_replay.timeline import RunState

BEGIN = "0"
"""Before the first step."""

_SINCE_START = re.compile(r"\+?([0-9]{1,9}(?:\.[0-9]{1,9})?)s\Z")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
CHECKPOINT = re.compile(rf"(?:c[0-9]{{1,7}}|[0-9a-f]{{32}}|{_UUID})\Z")
"""A checkpoint: as ``playhead checkpoints`` numbers it, by its id in a store, or LangGraph's."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]")


def find_moment(run: Run, text: str) -> tuple[RunState, str]:
    """The moment that ``text`` names in ``run``, and how it was found, in words if that needs any.

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
