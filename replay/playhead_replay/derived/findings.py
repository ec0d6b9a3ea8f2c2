"""All that is derived from a run for lists and alerts: its failures and its loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from playhead_replay.derived.loops import RunLoop, loops_of
from playhead_replay.failures import find
from playhead_replay.failures.find import Failure, failures_of
from playhead_replay.run.run import Run
from playhead_replay.timeline.tool_calls import tool_calls_of

VERSION: Final = find.VERSION * 100 + 2
"""Changes with the rules of failures and of loops. Runs of another version are derived again."""
LONGEST_NAME: Final = 80
"""Characters of the names in the word of a loop."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was derived from a run."""

    failures: list[Failure]
    loops: list[RunLoop]
    """Those with equal results."""
    is_looping: bool
    """Whether the last thing that the run did is part of a loop."""

    @property
    def failed(self) -> set[str]:
        """``tool/timeout`` for each failure that the run did not recover from."""
        return {_word(one) for one in self.failures if not one.recovered}

    @property
    def recovered(self) -> set[str]:
        """The same for those that it recovered from."""
        return {_word(one) for one in self.failures if one.recovered} - self.failed

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
    loops = [one for one in loops_of(run, calls) if one.same_result]
    last = max((call.ended_ns or 0 for call in calls), default=0)
    last = max([last, *(step.span.ended_ns or 0 for step in run.steps[-1:] if not calls)])
    return Findings(
        failures_of(run, calls), loops, any(one.ended_ns and one.ended_ns >= last for one in loops)
    )


def _word(one: Failure) -> str:
    return f"{one.type}/{one.code.replace('/', '_')[:LONGEST_NAME]}"
