"""Tapes in memory, and what is missing from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from playhead_core.facts import Content
from playhead_core.integrity.number_ranges import without
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_core.tape.protocols import Tape
from playhead_replay.tape_files.tape_file import laid_out
from playhead_semconv import attributes as a
from playhead_semconv import events as e


@runtime_checkable
class AgedTape(Protocol):
    """A tape from which facts may have aged out."""

    def aged(self) -> list[tuple[int, int]]:
        """Ranges of missing numbers, first and last included."""
        ...


class HeldTape(IndexedTape):
    """A tape whose facts were copied from their store once; content is still read from the store."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._aged = tape.aged() if isinstance(tape, AgedTape) else []
        super().__init__(laid_out(tape.facts()), tape.instance)

    def aged(self) -> list[tuple[int, int]]:
        """Ranges of numbers whose facts have aged out of the store; they are no gaps."""
        return self._aged

    def gaps(self) -> list[tuple[int, int]]:
        """Missing ranges of sequence numbers, first and last included."""
        return list(without(super().gaps(), self._aged))

    def read(self, content: Content) -> bytes:
        """The bytes of a content of this tape."""
        return self._tape.read(content)


def held(tape: Tape) -> IndexedTape:
    """``tape`` with its facts copied into memory."""
    return tape if isinstance(tape, IndexedTape) else HeldTape(tape)


@dataclass(frozen=True, slots=True)
class Gap:
    """Facts that are missing from a tape."""

    instance: str
    first: int
    last: int
    """Number of the last missing fact, included."""
    reason: str = ""

    def __str__(self) -> str:
        count = self.last - self.first + 1
        reason = f" ({self.reason})" if self.reason else ""
        return f"{count} fact{'s' if count > 1 else ''} missing: {self.first} to {self.last}{reason}"


def gaps_of(tape: IndexedTape) -> list[Gap]:
    """What is missing from a tape: holes in the numbers, and an announced tail that is absent."""
    missing = tape.gaps()
    announced = -1
    reasons: dict[int, str] = {}
    for fact in tape.named(e.PLAYHEAD_PROCESS_HEARTBEAT, e.PLAYHEAD_PROCESS_EXIT, e.PLAYHEAD_GAP):
        announced = max(announced, int(fact.attributes.get(a.PLAYHEAD_PROCESS_LAST_SEQ, -1)))
        if fact.name == e.PLAYHEAD_GAP:
            first = int(fact.attributes[a.PLAYHEAD_GAP_FIRST])
            reasons[first] = str(fact.attributes.get(a.PLAYHEAD_GAP_REASON, ""))
    if announced > tape.last_seq:
        missing.append((tape.last_seq + 1, announced))
    return [Gap(tape.instance.hex(), first, last, reasons.get(first, "")) for first, last in missing]
