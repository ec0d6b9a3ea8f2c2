"""What a program that has just been recorded left in the spool, because its endpoint did not take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead_cli.views.words import count
from playhead_exporter.spool.folders import SpoolFolders
from playhead_exporter.spool.recovery import left_facts, pending
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_exporter.spool.recovery import Pending
    from playhead_semconv.settings import Settings


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A run that waits in the spool."""

    trace_id: str
    facts: int
    spans: int

    def __str__(self) -> str:
        held = " and ".join(
            count(number, what)
            for number, what in ((self.facts, "fact"), (self.spans, "span"))
            if number
        )
        return f"run {self.trace_id[:8]} waits in the spool, {held}, nothing lost"


def undelivered(settings: Settings, by: str) -> Undelivered | None:
    """What the processes left that one ``playhead record`` ran; None if they left nothing.

    ``by``: the word by which they are found.
    """
    folders = SpoolFolders.of(settings)
    left = [(one, trace) for one in pending(folders) if (trace := _trace_of(folders, one, by))]
    if not left:
        return None
    return Undelivered(left[0][1], sum(one.facts for one, _ in left), sum(one.spans for one, _ in left))


def _trace_of(folders: SpoolFolders, one: Pending, by: str) -> str:
    """The trace of a process that has something left; empty if somebody else started it."""
    if not (one.facts or one.spans):
        return ""
    first = next(left_facts(folders, one.instance), None)
    if first is None or first.name != e.PLAYHEAD_PROCESS_START:
        return ""
    return first.trace_id.hex() if first.attributes.get(a.PLAYHEAD_PROCESS_RECORDED_BY) == by else ""
