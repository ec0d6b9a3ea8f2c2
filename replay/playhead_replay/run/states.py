"""The states that a program reported with ``playhead.state``."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playhead_core.difference import Difference, body_difference, json_difference
from playhead_core.errors import TapeError
from playhead_core.facts import Content, ExchangeId, Fact
from playhead_core.normalize import ComparedRequest, pairs_of, verify
from playhead_core.rerun.state_documents import plain, unkept_in
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_core.tape.span_starts import TELL_STARTS, starts_among
from playhead_replay.json_objects.recorded import NamedState
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_replay.run.steps import Step


@dataclass(frozen=True, slots=True)
class State:
    """A reported state."""

    name: str
    id: ExchangeId
    seq: int
    content: Content
    tape: IndexedTape = field(compare=False, repr=False)
    step: int = 0
    """Number of the last step that had begun; 0 before the first."""
    pairs: str = ""
    """Replay: the values that differ from the recorded ones, in the encoding of a tape."""

    @property
    def has_content(self) -> bool:
        """Whether it was recorded with its content."""
        return bool(self.content.digest)

    @property
    def body(self) -> bytes:
        """The bytes on the tape. `TapeError`."""
        return self.tape.read(self.content)

    def shown(self) -> tuple[Any, list[str]]:
        """The value and what could not be kept of it; where it cannot be read, None and the reason."""
        try:
            return (self.value, self.unkept) if self.has_content else (None, [])
        except (TapeError, ValueError, RecursionError) as problem:
            why = problem.what if isinstance(problem, TapeError) else problem
            return None, [f"cannot be read: {why}"]

    def to_json(self, name: str) -> NamedState:
        """As an object of plain values. ``name``: by which it is known at a step."""
        value, unkept = self.shown()
        return {"name": name, "step": self.step, "value": value, "unkept": unkept}

    @property
    def document(self) -> Any:
        """The decoded body, including markers for values that are not plain JSON."""
        return json.loads(self.body)

    @property
    def value(self) -> Any:
        """As plain values: objects become their attributes."""
        return plain(self.document)

    @property
    def unkept(self) -> list[str]:
        """What of it could not be kept: its path and the class of what is there. `TapeError`."""
        return list(unkept_in(self.document)) if self.has_content else []


def states_of(tape: IndexedTape, steps: Iterable[Step] = ()) -> list[State]:
    """The states on a tape, in order. ``steps``: of the run, to find the step of each state."""
    numbers = {step.span.span_id: step.number for step in steps}
    starts: list[tuple[int, int]] = []
    if numbers:
        for fact in starts_among(tape.named(*TELL_STARTS)):
            number = numbers.get(fact.span_id.hex())
            if number is not None:
                starts.append((fact.seq, max(number, starts[-1][1] if starts else 0)))
    found: list[State] = []
    for fact in tape.named(e.PLAYHEAD_STATE):
        if fact.exchange is not None and fact.body is not None:
            at = bisect_left(starts, (fact.seq, 0))
            found.append(_state(fact, fact.exchange, fact.body, tape, starts[at - 1][1] if at else 0))
    return found


def _state(fact: Fact, id: ExchangeId, body: Content, tape: IndexedTape, step: int) -> State:
    content = Content(body.digest, body.size) if body.digest and body.base is None else body
    name, pairs = (
        str(fact.attributes.get(one, "")) for one in (a.PLAYHEAD_STATE_NAME, a.PLAYHEAD_VOLATILE_PAIRS)
    )
    return State(name, id, fact.seq, content, tape, step, pairs)


def state_differences(
    tape: list[State], now: list[State]
) -> Iterator[tuple[State | None, State | None, Difference]]:
    """Differences between the states of two executions; states with the same id are compared."""
    theirs = {one.id: one for one in now}
    for one in tape:
        other = theirs.pop(one.id, None)
        if other is None:
            yield one, None, Difference("state", one.name, "(not said)")
            continue
        found = _difference(one, other)
        if found is not None:
            yield one, other, found
    for other in theirs.values():
        yield None, other, Difference("state", "(not said)", other.name)


def differs_in_pairs(tape: State, now: State) -> bool:
    """Whether two states differ only in values that the replay handed out."""
    stated = now.pairs
    if not stated or tape.name != now.name:
        return False
    try:
        return (
            verify(ComparedRequest.of(tape.body), ComparedRequest.of(now.body), pairs_of(stated)) is None
        )
    except TapeError:
        return False


def _difference(one: State, other: State) -> Difference | None:
    if one.name != other.name:
        return Difference("name", one.name, other.name)
    if not (one.has_content and other.has_content) or one.content.digest == other.content.digest:
        return None
    try:
        found = json_difference(one.value, other.value)
        return found or body_difference(one.body, other.body)
    except (TapeError, ValueError, RecursionError):
        return Difference("digest", one.content.digest.hex()[:16], other.content.digest.hex()[:16])
