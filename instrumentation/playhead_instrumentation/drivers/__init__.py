"""What a boundary asks: recorder and player. Only here it is known which of them answers."""

from __future__ import annotations

from playhead_instrumentation.drivers import quiet_hooks, wakes
from playhead_instrumentation.drivers.allowed import NOTHING, Allowed
from playhead_instrumentation.drivers.driver import Driver
from playhead_instrumentation.drivers.files import Files
from playhead_instrumentation.drivers.gate import OpenGate
from playhead_instrumentation.drivers.held_gate import HeldGate
from playhead_instrumentation.drivers.played_files import PlayedFiles
from playhead_instrumentation.drivers.player import Player, deliveries
from playhead_instrumentation.drivers.strict_gate import StrictGate
from playhead_instrumentation.drivers.tape_gate import TapeGate
from playhead_instrumentation.drivers.verdict import World
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.workspace import LIMIT_BYTES, Workspace
from playhead_semconv.seams import Sink, Tape


def open_driver(
    sink: Sink,
    redactor: Redactor,
    tape: Tape | None = None,
    *,
    strict: bool = False,
    scratch: str = "",
    file_limit_bytes: int = LIMIT_BYTES,
    allowed: Allowed = NOTHING,
) -> Driver:
    """The driver of a recording, or, with a ``tape``, of its replay.

    ``strict``: record one delivery at a time. Where that is not possible the gate's level says so.
    ``scratch``: an empty folder for what a replay writes, by default one that goes with the process.
    ``allowed``: what a replay may do for real.
    """
    quiet_hooks.install()
    wakes.hook_clocks()
    if tape is None:
        gate = StrictGate() if strict else OpenGate()
        driver = Driver(sink, redactor, World(), gate)
        workspace = Workspace.of_process(file_limit_bytes)
        driver.files = Files(sink, redactor, driver.declare, driver.effect, workspace, file_limit_bytes)
    else:
        player = Player(tape, allowed)
        came = [played.exchange for played in player.requests]
        asked = deliveries([*player.exchanges(), *came])
        order = [*asked, *player.lane_ends.values(), *player.wakes.values()]
        gate = TapeGate(order, level=player.level, spun=player.spun)
        driver = Driver(sink, redactor, player, gate, player.lane_ends, tape, player.wakes, allowed)
        gate.on_moved = driver.moved
        driver.requests = player.requests
        first = next((one.delivery for one in came if one.delivery is not None), None)
        driver.boot = [one for one in order if first is not None and one.batch < first.batch]
        workspace = Workspace.of_process(file_limit_bytes, recorded_cwd=player.cwd)
        driver.files = PlayedFiles(
            sink, redactor, driver.declare, driver.effect, tape, workspace, scratch, file_limit_bytes
        )
    if isinstance(gate, HeldGate) and gate.level == "strict":
        gate.on_spun = driver.wakes.spun
    wakes.keep(driver.wakes)
    return driver
