"""Which driver a process has: that of a recording, of a replay, of a fork or a resume.

What a recording at level ``exchanges`` does not need is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead_instrumentation.driver.allowed import NOTHING, Allowed
from playhead_instrumentation.driver.driver import Driver
from playhead_instrumentation.driver.gate import CountingGate, Gate, OpenGate
from playhead_instrumentation.driver.verdict import World
from playhead_instrumentation.redaction import Redactor
from playhead_semconv.rerun.plans import Plan
from playhead_semconv.tape.protocols import Sink

if TYPE_CHECKING:
    from playhead_instrumentation.determinism.scheduler.timer_ends import Wakes
    from playhead_semconv.tape.indexed_tapes import IndexedTape

FILE_LIMIT_BYTES = 16 << 20
"""Of a larger file the digest is kept, not the content, where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a driver is made of, besides its tape."""

    sink: Sink
    redactor: Redactor
    level: str = "causal"
    boundaries: Collection[str] = ()
    """Names of the boundaries of the recording that is made or played."""
    file_limit_bytes: int = FILE_LIMIT_BYTES
    hidden: Collection[str] = ()
    """Folders in which no child changes anything."""
    allowed: Allowed = NOTHING
    """What a replay may do for real."""
    plan: Plan | None = None
    """Of a fork: where it parts from its tape."""
    say: Callable[[str], None] = lambda text: None
    """Told where a fork parts from its tape."""


def open_driver(opening: Opening, tape: IndexedTape | None = None, scratch: str = "") -> Driver:
    """The driver of a recording, or, with a ``tape``, of its replay; with a plan of a fork of it.

    At level ``strict`` a recording takes one delivery at a time; where that is not possible the gate's
    level says so. ``scratch``: an empty folder for what a replay writes, by default one that goes with
    the process.
    """
    if tape is None:
        return _record(opening)
    from playhead_instrumentation.playback import opening as playing

    return playing.open_player(opening, tape, scratch)


def _record(opening: Opening) -> Driver:
    gate = _gate(opening.level)
    names = frozenset(opening.boundaries)
    sink = _coalescing(opening.sink) if names & {"clock", "timers"} else opening.sink
    driver = Driver(sink, opening.redactor, World(), gate)
    if names & {"files", "sqlite", "processes.talk"}:
        from playhead_instrumentation.host.files.recorded import Files
        from playhead_instrumentation.host.files.workspace import Workspace

        limit_bytes = opening.file_limit_bytes
        workspace = Workspace.of_process(limit_bytes, hidden=opening.hidden)
        driver.files = Files(
            sink, opening.redactor, driver.declare, driver.effect, workspace, limit_bytes
        )
    if "timers" in names:
        from playhead_instrumentation.determinism.scheduler import timer_ends as wakes

        driver.wakes = wakes.Wakes(sink, gate, driver.reads, driver.declare)
        wakes.keep(driver.wakes)
        if opening.level == "strict":
            _tell(gate, driver.wakes)
    return driver


def _coalescing(sink: Sink) -> Sink:
    from playhead_instrumentation.driver.coalescing import Coalescing

    return Coalescing(sink)


def _tell(gate: Gate, wakes: Wakes) -> None:
    """Have a gate that holds things back say what it could not hold."""
    from playhead_instrumentation.determinism.gates.held import HeldGate

    if isinstance(gate, HeldGate):
        gate.on_spun, gate.books.on_lost = wakes.spun, wakes.turn_lost


def _gate(level: str) -> Gate:
    if level == "exchanges":
        return CountingGate()
    if level == "causal":
        return OpenGate()
    from playhead_instrumentation.determinism.gates.strict import StrictGate

    return StrictGate()
