"""Finds the edits of a fork in a run, so that no reader mistakes an edit for a real event."""

from __future__ import annotations

from collections.abc import Iterator

from playhead_core.facts import Fact
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.run import Run
from playhead_semconv import attributes as a
from playhead_semconv import events as e


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
