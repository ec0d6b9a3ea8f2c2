"""Makes the driver of a process: of a recording, a replay, a fork or a resume.

A recording at level ``exchanges`` imports only what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead_core.tape.protocols import Sink
from playhead_instrumentation.recorder.coalescing import Coalescing
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.recorder.gate import CountingGate, Gate, OpenGate
from playhead_instrumentation.recorder.options import DriverOptions

if TYPE_CHECKING:
    from playhead_core.tape.indexed_tapes import IndexedTape
    from playhead_instrumentation.scheduler.timer_ends import Wakes


def open_driver(
    options: DriverOptions, tape: IndexedTape | None = None, scratch: str = "", *, forked: bool = False
) -> Driver:
    """The driver of a recording; with a ``tape``, of its replay; with a plan as well, of a fork of it.

    At level ``strict`` a recording takes one delivery at a time; if that is not possible, the level of
    the gate says so. ``scratch``: an empty folder for what a replay writes, by default one that is
    deleted with the process. ``forked``: the process was forked by one that is replayed, and ends as its
    ``tape`` does.
    """
    if tape is None:
        return _record(options)
    from playhead_instrumentation.replayer.opening import dies_with, ends_at_standstill, open_player

    driver = open_player(options, tape, scratch)
    if forked:
        dies_with(driver, tape)
        ends_at_standstill(driver, tape)
    return driver


def _record(options: DriverOptions) -> Driver:
    gate = _gate(options.level)
    names = frozenset(options.boundaries)
    sink = _coalescing(options.sink) if names & {"clock", "timers"} else options.sink
    driver = Driver(sink, options.redactor, None, gate)
    if names & {"files", "sqlite", "processes.talk"}:
        from playhead_instrumentation.libraries.files.recorded import Files
        from playhead_instrumentation.libraries.files.workspace import Workspace

        workspace = Workspace.of_process(options.file_limit_bytes, hidden=options.hidden)
        driver.files = Files(driver, workspace)
    if "timers" in names:
        from playhead_instrumentation.scheduler import timer_ends

        driver.wakes = timer_ends.Wakes(sink, gate, driver.reads, driver.declare)
        timer_ends.keep(driver.wakes)
        if options.level == "strict":
            _tell(gate, driver.wakes)
    return driver


def _coalescing(sink: Sink) -> Sink:
    return Coalescing(sink)


def _tell(gate: Gate, wakes: Wakes) -> None:
    """Connect a gate that holds arrivals to the facts about lost permits and busy loops."""
    from playhead_instrumentation.scheduler.gates.held import HeldGate

    if isinstance(gate, HeldGate):
        gate.on_spun, gate.ledger.on_lost = wakes.spun, wakes.permit_lost


def _gate(level: str) -> Gate:
    if level == "exchanges":
        return CountingGate()
    if level == "causal":
        return OpenGate()
    from playhead_instrumentation.scheduler.gates.strict import StrictGate

    return StrictGate()
