"""Opens the driver of a replay, a fork or a resume."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterable
from typing import Final

from playhead_core.boundaries import EXCHANGES
from playhead_core.errors import PlayheadError
from playhead_core.facts import Delivery
from playhead_core.rerun.plans import Plan
from playhead_core.tape.folds import CONTROLS
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_core.tape.protocols import Tape
from playhead_instrumentation.libraries.files.branched import BranchFiles
from playhead_instrumentation.libraries.files.played import PlayedFiles
from playhead_instrumentation.libraries.files.workspace import Workspace
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.recorder.options import Allowed, DriverOptions
from playhead_instrumentation.recorder.reads import Reads
from playhead_instrumentation.recorder.states import States
from playhead_instrumentation.replayer.branch import Branch
from playhead_instrumentation.replayer.player import Player, deliveries
from playhead_instrumentation.replayer.repeated_edits import Repeated
from playhead_instrumentation.replayer.signals import PlayedSignals
from playhead_instrumentation.replayer.virtual_time.gate import VirtualGate, started_ns, times_of
from playhead_instrumentation.replayer.virtual_time.reads import VirtualReads
from playhead_instrumentation.replayer.virtual_time.time import FlowingTime, VirtualTime
from playhead_instrumentation.scheduler import timer_ends
from playhead_instrumentation.scheduler.gates.branch import BranchGate
from playhead_instrumentation.scheduler.gates.standstill import Refusals, Standstill, waiting
from playhead_instrumentation.scheduler.gates.tape import TapeGate
from playhead_instrumentation.scheduler.timer_ends import Wakes
from playhead_semconv import attributes as a
from playhead_semconv import events as e

STREAMS = ("stdout", "stderr")


class Printed:
    """The recorded output of each stream that the program has not printed again yet."""

    def __init__(self, tape: Tape, scrub: Callable[[str], str]) -> None:
        """``scrub``: removes credentials from a text, as was done for the tape."""
        self._scrub = scrub
        self._left: dict[str, bytes] = {}
        pieces: dict[str, list[bytes]] = {}
        for fact in tape.facts():
            if fact.name == e.PLAYHEAD_EFFECT and fact.body is not None:
                kind = str(fact.attributes.get(a.PLAYHEAD_EFFECT_KIND))
                pieces.setdefault(kind, []).append(fact.body.inline or b"")
        for name in STREAMS:
            self._left[name] = b"".join(pieces.get(name, ()))

    def new(self, stream: str, text: str, encoding: str) -> str:
        """The part of ``text`` that is not on the tape and is to be printed."""
        left = self._left[stream]
        if not left:
            return text
        data = self._scrub(text).encode(encoding, "backslashreplace")
        if left.startswith(data):
            self._left[stream] = left[len(data) :]
            return ""
        self._left[stream] = b""
        if data.startswith(left):
            known = left.decode(encoding, "replace")
            return text[len(known) :] if text.startswith(known) else text
        return text

    def forget(self) -> None:
        """Print everything from now on."""
        for name in STREAMS:
            self._left[name] = b""


_refusals: Final = Refusals()


def open_player(options: DriverOptions, tape: IndexedTape, scratch: str) -> Driver:
    """The driver of a replay of ``tape``, or of a fork or resume of it where the opening has a plan."""
    if options.plan is not None:
        return _open_branch(options, tape, options.plan, scratch)
    sink, redactor, allowed = options.sink, options.redactor, options.allowed
    player = _player(tape, allowed)
    if player.level == EXCHANGES:
        time = VirtualTime(started_ns(tape))
        gate = virtual = VirtualGate(time, times_of(tape), level=player.level)
        virtual.unasked_ns = player.unasked_ns
    else:
        time = FlowingTime(started_ns(tape))
        gate, virtual = TapeGate(player.order, level=player.level, spun=player.spun), None
    driver = Driver(sink, redactor, player, gate, tape, allowed)
    if next(tape.named(*CONTROLS), None) is not None:
        driver.control = Repeated(driver)
    driver.states.varied = player.varied
    driver.lane_ends = player.lane_ends
    driver.reads = _reads(options, driver, player, tape, time)
    if virtual is not None:
        driver.on_declared = virtual.declared
    driver.wakes = Wakes(sink, gate, driver.reads, driver.declare, player.wakes, kept=virtual is None)
    gate.on_moved = driver.moved
    _expect(driver, player, player.order)
    driver.files = PlayedFiles(driver, _workspace(options, player), tape, scratch)
    if gate.level == "strict":
        gate.on_spun, gate.ledger.on_lost = driver.wakes.spun, driver.wakes.permit_lost
    timer_ends.keep(driver.wakes)
    if "signals" in options.boundaries:
        driver.signals = PlayedSignals(gate, player.signals)
    return driver


def _player(tape: IndexedTape, allowed: Allowed) -> Player:
    if not any(id.kind == "semantic" for id in tape.exchange_ids()):
        return Player(tape, allowed)
    from playhead_instrumentation.replayer.semantic import (
        SemanticPlayer,
    )  # only semantic replays need it

    return SemanticPlayer(tape, allowed)


def _workspace(options: DriverOptions, player: Player) -> Workspace:
    limit_bytes, hidden = options.file_limit_bytes, options.hidden
    return Workspace.of_process(limit_bytes, recorded_cwd=player.cwd, hidden=hidden)


def _reads(
    options: DriverOptions, driver: Driver, player: Player, tape: IndexedTape, time: VirtualTime
) -> Reads:
    """What answers reads of clocks and entropy. ``time``: for reads that no tape holds."""
    driver.reads.on_drawn = player.handed.note
    if {"clock", "entropy"} <= set(options.boundaries):
        return driver.reads
    player.on_match = lambda recording: time.to(recording.time_ns)
    reads = VirtualReads(options.sink, driver.declare, tape, time, player.handed, options.boundaries)
    reads.on_drawn = player.handed.note
    return reads


def dies_with(driver: Driver, tape: IndexedTape) -> None:
    """End a child that was killed when recorded (its ``tape`` has no end) where its tape ends."""
    gate = driver.gate
    if isinstance(gate, TapeGate) and next(tape.named(e.PLAYHEAD_PROCESS_EXIT), None) is None:
        driver.reads.past_tape = driver.past_tape
        driver.killed = gate.on_killed = functools.partial(signal.raise_signal, signal.SIGKILL)


def ends_at_standstill(driver: Driver, tape: IndexedTape) -> None:
    """Make a replay of ``tape`` report a standstill and end as if by SIGKILL."""
    gate = driver.gate
    if not isinstance(gate, TapeGate) or isinstance(gate, BranchGate) or driver.allowed:
        return

    def ends(threads: list[str]) -> None:
        driver.stands(threads)
        os.kill(os.getpid(), signal.SIGKILL)

    if isinstance(gate, VirtualGate):
        gate.on_standstill = lambda: ends(list(waiting()))
    killed = next(tape.named(e.PLAYHEAD_PROCESS_EXIT), None) is None
    if killed:
        gate.on_asleep = lambda: ends(list(waiting()))
    driver.on_refused = _refusals.note
    Standstill(gate, killed=killed, refusals=_refusals, ends=ends).start()


def _expect(driver: Driver, player: Player, order: Iterable[Delivery]) -> None:
    """Tell the driver which requests came in on the tape."""
    driver.requests = player.requests
    first = next((one.delivery for one in player.came() if one.delivery is not None), None)
    driver.boot = [one for one in order if first is not None and one.batch < first.batch]


def _open_branch(options: DriverOptions, tape: IndexedTape, plan: Plan, scratch: str) -> Driver:
    """The driver of a fork or a resume."""
    sink, redactor, report = options.sink, options.redactor, options.report
    branch = Branch(tape, plan)
    time = FlowingTime(started_ns(tape))
    asked = deliveries([*branch.answered(), *branch.came()])
    due = [one.due for one in branch.signals]
    order = [*asked, *branch.lane_ends.values(), *branch.wakes.values(), *due]
    gate = BranchGate(order, level=branch.level, spun=branch.spun, going=branch.going)
    driver = Driver(sink, redactor, branch, gate, tape)
    driver.control = Repeated(driver)
    driver.branches = True
    driver.lane_ends = branch.lane_ends
    driver.reads = _reads(options, driver, branch, tape, time)
    driver.printed = printed = Printed(tape, redactor.text)
    driver.signals = signals = PlayedSignals(gate, branch.signals)
    ends = Wakes(sink, gate, driver.reads, driver.declare, branch.wakes, goes_on=True)
    driver.wakes = ends
    driver.states = States(sink, redactor, driver.declare, tape, plan.states, linked=True)
    gate.on_moved = driver.moved
    _expect(driver, branch, order)
    files = driver.files = BranchFiles(driver, _workspace(options, branch), tape, scratch)
    files.say = report

    def part(error: PlayheadError) -> None:
        why = f"{error.what}; {error.cause}".removesuffix("; ")
        report(f"the program no longer matches the recording: {why}")
        for what in (driver.reads, ends, printed, files, signals):
            what.forget()
        gate.part([*deliveries(branch.left()), *branch.lane_ends.values(), *branch.wakes.values()])

    branch.played_out = lambda: gate.over
    branch.on_parting = part
    branch.on_live = files.bring
    if gate.level == "strict":
        gate.on_spun, gate.ledger.on_lost = ends.spun, ends.permit_lost
    timer_ends.keep(ends)
    return driver
