"""What a boundary asks: recorder and player. Only here it is known which of them answers."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Collection, Iterable

from playhead_instrumentation.drivers import quiet_hooks, wakes
from playhead_instrumentation.drivers.allowed import NOTHING, Allowed
from playhead_instrumentation.drivers.branch import Branch
from playhead_instrumentation.drivers.branch_files import BranchFiles
from playhead_instrumentation.drivers.branch_gate import BranchGate
from playhead_instrumentation.drivers.driver import Driver
from playhead_instrumentation.drivers.files import Files
from playhead_instrumentation.drivers.gate import OpenGate
from playhead_instrumentation.drivers.held_gate import HeldGate
from playhead_instrumentation.drivers.played_files import PlayedFiles
from playhead_instrumentation.drivers.player import Player, deliveries
from playhead_instrumentation.drivers.printed import Printed
from playhead_instrumentation.drivers.standstill import Standstill
from playhead_instrumentation.drivers.states import States
from playhead_instrumentation.drivers.strict_gate import StrictGate
from playhead_instrumentation.drivers.tape_gate import TapeGate
from playhead_instrumentation.drivers.verdict import World
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.workspace import LIMIT_BYTES, Workspace
from playhead_semconv import events as e
from playhead_semconv.errors import PlayheadError
from playhead_semconv.facts import Delivery
from playhead_semconv.plans import Plan
from playhead_semconv.seams import Sink
from playhead_semconv.tapes import IndexedTape


def open_driver(
    sink: Sink,
    redactor: Redactor,
    tape: IndexedTape | None = None,
    *,
    strict: bool = False,
    scratch: str = "",
    file_limit_bytes: int = LIMIT_BYTES,
    hidden: Collection[str] = (),
    allowed: Allowed = NOTHING,
    plan: Plan | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Driver:
    """The driver of a recording, or, with a ``tape``, of its replay; with a ``plan`` of a fork of it.

    ``strict``: record one delivery at a time. Where that is not possible the gate's level says so.
    ``scratch``: an empty folder for what a replay writes, by default one that goes with the process.
    ``hidden``: folders in which no child changes anything.
    ``allowed``: what a replay may do for real. ``say``: told where a fork parts from its tape.
    """
    quiet_hooks.install()
    wakes.hook_clocks()
    if tape is not None and plan is not None:
        return _open_branch(sink, redactor, tape, plan, scratch, file_limit_bytes, hidden, say)
    if tape is None:
        gate = StrictGate() if strict else OpenGate()
        driver = Driver(sink, redactor, World(), gate)
        workspace = Workspace.of_process(file_limit_bytes, hidden=hidden)
        driver.files = Files(sink, redactor, driver.declare, driver.effect, workspace, file_limit_bytes)
    else:
        player = Player(tape, allowed)
        gate = TapeGate(player.order, level=player.level, spun=player.spun)
        driver = Driver(sink, redactor, player, gate, player.lane_ends, tape, player.wakes, allowed)
        gate.on_moved = driver.moved
        _expect(driver, player, player.order)
        workspace = Workspace.of_process(file_limit_bytes, recorded_cwd=player.cwd, hidden=hidden)
        driver.files = PlayedFiles(
            sink, redactor, driver.declare, driver.effect, tape, workspace, scratch, file_limit_bytes
        )
    if isinstance(gate, HeldGate) and gate.level == "strict":
        gate.on_spun, gate.books.on_lost = driver.wakes.spun, driver.wakes.turn_lost
    wakes.keep(driver.wakes)
    return driver


def dies_with(driver: Driver, tape: IndexedTape) -> None:
    """A child that was killed when recorded (its ``tape`` has no end) ends where its tape does."""
    gate = driver.gate
    if isinstance(gate, TapeGate) and next(tape.named(e.PLAYHEAD_PROCESS_EXIT), None) is None:
        driver.reads.past_tape = driver.past_tape
        driver.killed = gate.on_killed = functools.partial(signal.raise_signal, signal.SIGKILL)


def ends_at_standstill(driver: Driver, tape: IndexedTape) -> None:
    """A replay of ``tape`` in which nobody goes on any more says so, and ends as by SIGKILL."""
    gate = driver.gate
    if type(gate) is not TapeGate or driver.allowed:
        return

    def ends(threads: list[str]) -> None:
        driver.stands(threads)
        os.kill(os.getpid(), signal.SIGKILL)

    killed = next(tape.named(e.PLAYHEAD_PROCESS_EXIT), None) is None
    Standstill(gate, killed=killed, ends=ends).start()


def _expect(driver: Driver, player: Player, order: Iterable[Delivery]) -> None:
    """Have the driver know which requests came on the tape."""
    driver.requests = player.requests
    first = next((one.delivery for one in player.came() if one.delivery is not None), None)
    driver.boot = [one for one in order if first is not None and one.batch < first.batch]


def _open_branch(
    sink: Sink,
    redactor: Redactor,
    tape: IndexedTape,
    plan: Plan,
    scratch: str,
    file_limit_bytes: int,
    hidden: Collection[str],
    say: Callable[[str], None],
) -> Driver:
    """The driver of a fork or a resume."""
    branch = Branch(tape, plan)
    asked = deliveries([*branch.answered(), *branch.came()])
    order = [*asked, *branch.lane_ends.values(), *branch.wakes.values()]
    gate = BranchGate(order, level=branch.level, spun=branch.spun, going=branch.going)
    printed = Printed(tape, redactor.text)
    driver = Driver(sink, redactor, branch, gate, branch.lane_ends, tape, branch.wakes, printed=printed)
    driver.states = States(sink, redactor, driver.declare, tape, plan.states, linked=True)
    gate.on_moved = driver.moved
    _expect(driver, branch, order)
    workspace = Workspace.of_process(file_limit_bytes, recorded_cwd=branch.cwd, hidden=hidden)
    files = driver.files = BranchFiles(
        sink, redactor, driver.declare, driver.effect, tape, workspace, scratch, file_limit_bytes
    )

    files.say = say

    def part(error: PlayheadError) -> None:
        say(f"the program parts from the tape: {error.what}; {error.cause}".removesuffix("; "))
        for what in (driver.reads, driver.wakes, printed, files):
            what.forget()
        gate.part([*deliveries(branch.left()), *branch.lane_ends.values(), *branch.wakes.values()])

    branch.played_out = lambda: gate.over
    branch.on_parting = part
    branch.on_live = files.bring
    if gate.level == "strict":
        gate.on_spun, gate.books.on_lost = driver.wakes.spun, driver.wakes.turn_lost
    wakes.keep(driver.wakes)
    return driver
