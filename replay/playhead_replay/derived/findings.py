"""All that lists and alerts know of a run: its failures, derived and reported, and its loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from playhead_core.reports import ProgramReport
from playhead_replay.derived.loops import RunLoop, loops_of
from playhead_replay.failures import find
from playhead_replay.failures.find import Failure, failures_of
from playhead_replay.run.run import Run
from playhead_replay.timeline.tool_calls import tool_calls_of

VERSION: Final = find.VERSION * 100 + 3
"""Changes with the rules of failures and of loops. Runs of another version are derived again."""
LONGEST_NAME: Final = 80
"""Characters of the names in the word of a loop, and of each half of that of a failure."""
OTHER: Final = "other"
"""Type of a reported failure without a type."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was derived from a run."""

    failures: list[Failure]
    reported: list[ProgramReport]
    """Failures that the program reported."""
    loops: list[RunLoop]
    """Those with equal results."""
    is_looping: bool
    """Whether the last thing that the run did is part of a loop."""

    @property
    def failed(self) -> set[str]:
        """``tool/timeout`` for each failure that it reported, or that it did not recover from."""
        derived = {failure_word(one.type, one.code) for one in self.failures if not one.recovered}
        return derived | {failure_word(one.text("type"), one.text("code")) for one in self.reported}

    @property
    def recovered(self) -> set[str]:
        """The same for those that it recovered from."""
        found = {failure_word(one.type, one.code) for one in self.failures if one.recovered}
        return found - self.failed

    @property
    def looped(self) -> set[str]:
        """``search ×20`` for each loop."""
        return {f"{loop_name(one)} ×{one.times}" for one in self.loops}


def loop_name(loop: RunLoop) -> str:
    """The names of a round: ``search``, ``search+read``."""
    return "+".join(loop.names)[:LONGEST_NAME]


def findings_of(run: Run) -> Findings:
    """Derive the findings of a run."""
    calls = tool_calls_of(run)
    loops = [one for one in loops_of(run) if one.same_result]
    last = max((call.ended_ns or 0 for call in calls), default=0)
    last = max([last, *(step.span.ended_ns or 0 for step in run.steps[-1:] if not calls)])
    reported = [one for one in run.reports if one.kind == "failure"]
    is_looping = any(one.ended_ns and one.ended_ns >= last for one in loops)
    return Findings(failures_of(run), reported, loops, is_looping)


def failure_word(type: str, code: str) -> str:
    """The word of a failure: ``tool/timeout``. ``type``: empty if a program did not report it."""
    kind, name = (one.replace("/", "_")[:LONGEST_NAME] for one in (type or OTHER, code))
    return f"{kind}/{name}"
