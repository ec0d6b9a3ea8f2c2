"""Undelivered data of a program that has just been recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead_cli.output.words import count
from playhead_exporter.spool.folders import SpoolFolders
from playhead_exporter.spool.recovery import left_facts, pending
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_core.facts import Fact
    from playhead_core.settings import Settings
    from playhead_exporter.spool.recovery import Pending


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A run in the spool."""

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
    """Return the undelivered data of one ``playhead record``; None if there is none.

    ``by``: the identifier of the recording.
    """
    left = list(_left(settings, by))
    if not left:
        return None
    facts, spans = sum(one.facts for one, _ in left), sum(one.spans for one, _ in left)
    return Undelivered(left[0][1].trace_id.hex(), facts, spans)


def delivered_by_another(settings: Settings, by: str) -> bool:
    """Return whether another process is delivering the data of the processes of ``by``.

    It owns their tapes until it has delivered them.
    """
    return any(
        one.alive and one.pid != start.attributes.get(a.PLAYHEAD_PROCESS_PID)
        for one, start in _left(settings, by)
    )


def _left(settings: Settings, by: str) -> Iterator[tuple[Pending, Fact]]:
    """Yield the spools of the processes of ``by``, each with its first fact."""
    folders = SpoolFolders.of(settings)
    for one in pending(folders):
        start = next(left_facts(folders, one.instance), None) if one.facts or one.spans else None
        if (
            start is not None
            and start.name == e.PLAYHEAD_PROCESS_START
            and start.attributes.get(a.PLAYHEAD_PROCESS_RECORDED_BY) == by
        ):
            yield one, start
