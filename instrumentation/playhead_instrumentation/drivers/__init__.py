"""What a boundary asks: recorder and player. Only here it is known which of them answers."""

from __future__ import annotations

from playhead_instrumentation.drivers.allowed import NOTHING, Allowed
from playhead_instrumentation.drivers.driver import Driver
from playhead_instrumentation.drivers.gate import OpenGate
from playhead_instrumentation.drivers.player import Player, deliveries
from playhead_instrumentation.drivers.strict_gate import StrictGate
from playhead_instrumentation.drivers.tape_gate import TapeGate
from playhead_instrumentation.drivers.verdict import World
from playhead_instrumentation.redaction import Redactor
from playhead_semconv.seams import Sink, Tape


def open_driver(
    sink: Sink,
    redactor: Redactor,
    tape: Tape | None = None,
    *,
    strict: bool = False,
    allowed: Allowed = NOTHING,
) -> Driver:
    """The driver of a recording, or, with a ``tape``, of its replay.

    ``allowed``: what a replay may do for real. ``strict``: record one delivery at a time. Where that is
    not possible the gate's level says so.
    """
    if tape is None:
        return Driver(sink, redactor, World(), StrictGate() if strict else OpenGate())
    player = Player(tape, allowed)
    order = [*deliveries(player.exchanges()), *player.lane_ends.values()]
    gate = TapeGate(order, level=player.level)
    return Driver(sink, redactor, player, gate, player.lane_ends, tape, allowed)
