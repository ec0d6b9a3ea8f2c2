"""What a process is told that executes a recorded program again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from playhead_instrumentation.recorder.allowed import NOTHING, Allowed

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Plan
    from playhead_core.tape.indexed_tapes import IndexedTape


class Rerun(msgspec.Struct, frozen=True):
    """A replay of a tape; with a plan, a fork or a resume, which goes on live behind the tape."""

    tape: IndexedTape
    """Its exchanges answer."""
    origin: str = ""
    """Run id of the run that is executed again."""
    allowed: Allowed = NOTHING
    """What a replay may do for real."""
    scratch: str = ""
    """An empty folder for what a replay writes; empty: one that is deleted with the process."""
    plan: Plan | None = None
    """Of a fork or a resume."""
    waits: bool = False
    """Nothing runs here: this is a warm process, and replays begin in forks of it."""
    say: Callable[[str], None] = lambda text: None
    """Called with the place where a fork leaves its tape."""

    @property
    def mode(self) -> str:
        """``replay``, ``fork`` or ``resume``."""
        return "replay" if self.plan is None else self.plan.mode


def start_of(tape: IndexedTape) -> Mapping[str, Any]:
    """Attributes of the process-start fact of a tape; empty where the tape is."""
    start = next(tape.facts(), None)
    return {} if start is None else start.attributes
