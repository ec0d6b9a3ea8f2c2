"""The outcome of a fork: how far the tape answered, and where the world did."""

from __future__ import annotations

from dataclasses import dataclass

from playhead_core.facts import Fidelity
from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.run import Run
from playhead_semconv import attributes as a
from playhead_semconv import events as e

PLAYED = (Fidelity.EXACT, Fidelity.VOLATILE, Fidelity.MOVED, Fidelity.CHANGED, Fidelity.SEMANTIC)
PRINTS = ("stdout", "stderr")
SHOWN = 5
"""Largest number of effects that are listed."""


@dataclass(frozen=True, slots=True)
class ForkOutcome:
    """The exchanges of a fork, grouped by what answered them."""

    played_steps: list[int]
    """Steps that the tape answered."""
    live_steps: list[int]
    """Steps with at least one request that went to the world."""
    played: int
    """Exchanges that the tape answered."""
    changed: int
    """Of these, those with an edited answer."""
    rebuilt: int
    """Of these, those with an answer that was rebuilt from a span."""
    live: int
    blocked: list[str]
    """Requests that were refused."""
    not_repeated: int
    """Writes that the origin had already done and that were not repeated."""
    done: list[str]
    """Real changes other than exchanges: files, connections, …"""

    @classmethod
    def of(cls, run: Run) -> ForkOutcome:
        """The outcome of a run that was forked or resumed."""
        numbers = run.step_numbers()
        steps: dict[int, set[str]] = {}
        played = changed = rebuilt = live = not_repeated = 0
        blocked: list[str] = []
        for exchange in run.exchanges:
            if exchange.exchange.ask.direction != "out":
                continue
            how = answered_by(exchange)
            if how == "blocked":
                blocked.append(f"{exchange.name} {exchange.key}")
            elif how == "live":
                live += 1
            else:
                played += 1
                changed += how == Fidelity.CHANGED
                rebuilt += how == Fidelity.SEMANTIC
                not_repeated += exchange.exchange.ask.effect == "write"
            number = numbers.get((exchange.instance, str(exchange.exchange.id)))
            if number is not None:
                steps.setdefault(number, set()).add(how if how in ("live", "blocked") else "tape")
        done: list[str] = []
        for tape in run.tapes:
            for fact in tape.named(e.PLAYHEAD_EFFECT):
                kind, how = (
                    fact.attributes[a.PLAYHEAD_EFFECT_KIND],
                    fact.attributes.get(a.PLAYHEAD_FIDELITY),
                )
                if kind in PRINTS:
                    continue
                not_repeated += how == Fidelity.EXACT
                if how in (None, Fidelity.LIVE):
                    done.append(f"{kind} {fact.attributes.get(a.PLAYHEAD_EFFECT_TARGET, '')}".strip())
        return cls(
            sorted(number for number, how in steps.items() if how == {"tape"}),
            sorted(number for number, how in steps.items() if "live" in how),
            played,
            changed,
            rebuilt,
            live,
            blocked,
            not_repeated,
            done,
        )

    def lines(self) -> list[str]:
        """As lines of text."""
        if not self.played:
            lines = ["no response came from the recording"]
        else:
            word = "step" if len(self.played_steps) == 1 else "steps"
            steps = f"{word} {ranges(self.played_steps)}" if self.played_steps else "no step"
            responses = _count(self.played, "response")
            effects = _count(self.not_repeated, "side effect")
            lines = [f"{steps} replayed, {responses} from the recording, {effects} not repeated"]
        if self.rebuilt:
            answers = _count(self.rebuilt, "response")
            lines.append(f"semantic, never exact: {answers} of the recording rebuilt from its spans")
        if self.live_steps:
            lines.append(f"live from step {self.live_steps[0]}")
        elif self.live:
            lines.append(f"{_count(self.live, 'live request')}, none of them a step")
        elif not self.done:
            all_of_it = self.played and not self.blocked
            lines.append(
                "no live requests" + (": the recording answered everything" if all_of_it else "")
            )
        if self.done and not self.live:
            shown = ", ".join(self.done[:SHOWN]) + (", …" if len(self.done) > SHOWN else "")
            lines.append(f"no live requests, but real side effects: {shown}")
        lines += [f"refused: {one}" for one in self.blocked]
        return lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def answered_by(exchange: RecordedExchange) -> str:
    """``exact``, ``moved``, ``changed``, ``blocked`` or ``live``."""
    at = exchange.exchange.ask.details
    stated = at.get(a.PLAYHEAD_FIDELITY, "live")
    if exchange.exchange.fidelity is Fidelity.BLOCKED or stated == Fidelity.BLOCKED:
        return "blocked"
    return str(stated) if stated in PLAYED else "live"


def ranges(numbers: list[int]) -> str:
    """Numbers as ranges.

    >>> ranges([1, 2, 3, 5])
    '1–3, 5'
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in found)
