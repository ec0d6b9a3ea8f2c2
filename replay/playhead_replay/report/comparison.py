"""A tape and the tape of its replay, matched: what all parts of a report look at."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from playhead_core.boundaries import had
from playhead_core.facts import Fact, Fidelity
from playhead_core.tape.folds import level_of
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_core.tape.slices import served
from playhead_replay.report.matching import Matching, match
from playhead_replay.report.report import Divergence
from playhead_replay.run.exchanges import RecordedExchange, exchanges_of
from playhead_replay.run.inbound_requests import requests_of
from playhead_replay.run.outputs import Outputs
from playhead_replay.run.run import Run
from playhead_semconv import attributes as a
from playhead_semconv import events as e

AT_THE_END = 1 << 62
"""Position of a divergence that comes after everything on the *now* tape."""


class Comparison:
    """A tape and the tape of its replay, with the exchanges of both matched."""

    def __init__(self, tape: IndexedTape, now: IndexedTape, run: Run) -> None:
        self.tape, self.now, self.run = tape, now, run
        self.now_whole = now
        """With the start-up phase of a service, which ``now`` leaves out."""
        self.level = level_of(tape.facts())
        start = next(tape.facts(), None)
        self.start = {} if start is None else start.attributes
        """Attributes of the recorded process-start fact."""
        self.is_imported = a.PLAYHEAD_PROCESS_PID not in self.start
        """Whether another tool recorded the exchanges: no process of playhead did."""
        self.had = frozenset(had(self.start))
        """Names of the recorded boundaries."""
        self.matching: Matching = match(
            exchanges_of(tape), exchanges_of(now), placed="order" in self.had
        )
        self.varied: list[str] = []
        """What differs in volatile values only."""
        self.came = requests_of(tape)
        """The recorded inbound requests; empty if the run is the process itself."""
        if self.came:
            self._leave_out_the_boot()
        self.outputs = Outputs.of_tape(self.tape)
        self.outputs_now = Outputs.of_tape(self.now)
        self._steps = run.step_numbers()
        self._asked = [found.now.first_seq for found in self.matching.matches]

    def _leave_out_the_boot(self) -> None:
        """For a service, compare only what it did for requests.

        Of its start-up phase, only what was blocked counts.
        """
        self.tape, self.now = served(self.tape), served(self.now)
        lanes = {fact.lane for fact in self.tape.facts()}
        self.matching.unused = [one for one in self.matching.unused if one.id.lane in lanes]

    def killed(self) -> bool:
        """Whether the recorded run did not end by itself."""
        if self.came:
            return any(one.exchange.end is None for one in self.came)
        return self.outputs.exit is None

    def played(self) -> int:
        """How many requests of the replay a recording answers."""
        return sum(1 for found in self.matching.matches if found.recorded is not None)

    def step_of(self, recorded: RecordedExchange | None) -> int | None:
        """Number of the recorded step of an exchange; None if it belongs to none."""
        if recorded is None:
            return None
        return self._steps.get((recorded.instance, str(recorded.id)))

    def step_before(self, seq: int) -> int | None:
        """The last step that had been requested when the fact ``seq`` of *now* was written."""
        for found in reversed(self.matching.matches[: bisect_right(self._asked, seq)]):
            step = self.step_of(found.recorded or found.nearest)
            if step is not None:
                return step
        return None

    def refused(self) -> Iterator[tuple[str, str, str, int]]:
        """Blocked effects other than exchanges: boundary, target, code that did it, number on *now*."""
        for fact in self.now_whole.named(e.PLAYHEAD_EFFECT):
            at = fact.attributes
            if at.get(a.PLAYHEAD_FIDELITY) == Fidelity.BLOCKED:
                yield (
                    str(at.get(a.PLAYHEAD_EFFECT_KIND, "effect")),
                    str(at.get(a.PLAYHEAD_EFFECT_TARGET, "")),
                    whose(at),
                    fact.seq,
                )

    def of_kind(self, kind: str) -> Iterator[Fact]:
        """Effects of the replay, including those of its start-up phase."""
        for fact in self.now_whole.named(e.PLAYHEAD_EFFECT):
            if fact.attributes.get(a.PLAYHEAD_EFFECT_KIND) == kind:
                yield fact

    def live(self, what: str, why: str, seq: int) -> Divergence:
        """The divergence for something real at the fact ``seq`` of *now*."""
        return Divergence("live", what, self.step_before(seq), after=True, detail=why, seq=seq)


def named_exchange(one: RecordedExchange) -> str:
    """An exchange in a message: its id and what was asked."""
    return f"{one.name} {one.key}"


def whose(at: Mapping[str, Any]) -> str:
    """Library and place, as ``psycopg in agent.py:12: ``; empty if unknown."""
    found = [str(at.get(name, "")) for name in (a.PLAYHEAD_EFFECT_LIBRARY, a.PLAYHEAD_EFFECT_PLACE)]
    text = " in ".join(filter(None, found))
    return f"{text}: " if text else ""


def edits_of(run: Run) -> list[str]:
    """What was edited, as in ``request of step 3``, in order; also at earlier forks of ``run``."""
    numbers = run.step_numbers()
    found: list[str] = []
    for exchange in run.exchanges:
        part = edited_part(exchange)
        if part:
            number = numbers.get((exchange.instance, str(exchange.exchange.id)))
            found.append(named(part, exchange, number))
    found += [state_named(fact) for tape in run.tapes for fact in edited_states(tape)]
    return found


def edited_part(exchange: RecordedExchange) -> str:
    """``request``: a different request was sent than the program made. ``answer``: the answer was
    edited.

    Empty if nothing was edited.
    """
    details = exchange.exchange.ask.details
    if a.PLAYHEAD_EDITED_DIGEST in details:
        return "request"
    return "answer" if a.PLAYHEAD_EDITED_ANSWER in details else ""


def named(part: str, exchange: RecordedExchange, step: int | None) -> str:
    """``request of step 3``; the name of the exchange if it belongs to no step."""
    return f"{part} of {exchange.name}" if step is None else f"{part} of step {step}"


def edited_states(tape: IndexedTape) -> Iterator[Fact]:
    """States that the program was given instead of its own."""
    return (fact for fact in tape.named(e.PLAYHEAD_STATE) if a.PLAYHEAD_EDITED_DIGEST in fact.attributes)


def state_named(fact: Fact) -> str:
    """``state plan``."""
    return f"state {fact.attributes.get(a.PLAYHEAD_STATE_NAME, '')}".strip()
