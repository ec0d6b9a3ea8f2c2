"""What a boundary asks: recorder and player. Only here it is known which of them answers."""

from __future__ import annotations

from playhead_instrumentation.drivers.driver import Driver
from playhead_instrumentation.drivers.gate import OpenGate
from playhead_instrumentation.drivers.player import Player, deliveries
from playhead_instrumentation.drivers.tape_gate import TapeGate
from playhead_instrumentation.drivers.verdict import World
from playhead_instrumentation.redaction import Redactor
from playhead_semconv.seams import Sink, Tape


def open_driver(sink: Sink, redactor: Redactor, tape: Tape | None = None) -> Driver:
    """The driver of a recording, or, with a ``tape``, of its replay."""
    if tape is None:
        return Driver(sink, redactor, World(), OpenGate())
    player = Player(tape)
    gate = TapeGate([*deliveries(player.exchanges()), *player.lane_ends.values()])
    return Driver(sink, redactor, player, gate, player.lane_ends, tape)
