"""What a replayed program reported about itself, such as decisions, against its tape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playhead_core.difference import Difference, json_difference
from playhead_core.facts import ExchangeId, Fact
from playhead_core.normalize import ComparedRequest, pairs_of, verify
from playhead_core.reports import NAMES, ProgramReport, as_json, report_of
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.report.comparison import AT_THE_END, Comparison
from playhead_replay.report.report import Divergence, OutputCheck
from playhead_semconv import attributes as a

_NAMED_BY = {
    "decision": ("question", "chosen"),
    "signal": ("type",),
    "failure": ("code",),
    "phase": ("name", "previous"),
    "message": ("to",),
    "task": ("id",),
}
"""The field that tells reports of a kind apart, and another if it is empty."""


def reports(comparison: Comparison) -> Iterator[Divergence]:
    """Yield the reports in which the replay differs from the tape; those with the same id are compared.

    Inside of a tool a report has no id: a replay does not run the tool.
    """
    recorded, now = _by_id(comparison.tape), _by_id(comparison.now)
    for id in dict.fromkeys([*recorded, *now]):
        one, other = recorded.get(id), now.get(id)
        told = [None if fact is None else _report(fact) for fact in (one, other)]
        if told[0] == told[1]:
            continue
        shown = told[0] or told[1]
        if shown is None:
            continue
        if one is not None and other is not None and _differs_in_pairs(one, other):
            comparison.varied.append(name_of(shown))
            continue
        seq = AT_THE_END if other is None else other.seq
        step = comparison.step_before(seq)
        difference = _difference(told[0], told[1])
        yield Divergence("report", name_of(shown), step, after=True, difference=difference, seq=seq)


def report_check(comparison: Comparison, found: list[Divergence]) -> Iterator[OutputCheck]:
    """Yield whether the reports agree, if there are any."""
    sides = [str(len(_by_id(tape))) for tape in (comparison.tape, comparison.now)]
    if sides != ["0", "0"]:
        yield OutputCheck("reports", not found, *sides)


def name_of(report: ProgramReport) -> str:
    """Return a report in a few words: ``decision which tool``."""
    fields = _NAMED_BY.get(report.kind, ())
    name = next((text for field in fields if (text := report.text(field))), "")
    return f"{report.kind} {name[:60]}".strip()


def _by_id(tape: IndexedTape) -> dict[ExchangeId, Fact]:
    return {fact.exchange: fact for fact in tape.named(*NAMES) if fact.exchange is not None}


def _report(fact: Fact) -> ProgramReport | None:
    return report_of(fact.name, fact.attributes)


def _difference(recorded: ProgramReport | None, now: ProgramReport | None) -> Difference:
    if recorded is None or now is None or recorded.kind != now.kind:
        sides = ("(not reported)" if one is None else _in_words(one) for one in (recorded, now))
        return Difference("report", *sides)
    found = json_difference(recorded.fields, now.fields)
    return found or Difference("report", _in_words(recorded), _in_words(now))


def _in_words(report: ProgramReport) -> str:
    chosen = f": {report.text('chosen')}" if report.kind == "decision" else ""
    return f"{name_of(report)}{chosen}"


def _differs_in_pairs(recorded: Fact, now: Fact) -> bool:
    """Return whether two reports differ only in values that the replay handed out."""
    stated: Any = now.attributes.get(a.PLAYHEAD_VOLATILE_PAIRS)
    if not isinstance(stated, str) or not stated or recorded.name != now.name:
        return False
    before, after = (ComparedRequest.of(as_json(fact.attributes)) for fact in (recorded, now))
    return verify(before, after, pairs_of(stated)) is None
