"""Compares a tape with the tape of its replay: the fidelity report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from playhead_core.boundaries import unkept
from playhead_core.facts import Fact, Fidelity
from playhead_core.normalize.tracebacks import differing
from playhead_core.process.module_coverage import REPEATED, UNHELD
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.report import compared_exchanges as exchanges
from playhead_replay.report import compared_outputs as outputs
from playhead_replay.report import compared_reports
from playhead_replay.report.ambient_reads import counts_of_reads, live_reads
from playhead_replay.report.comparison import (
    Comparison,
    edited_part,
    edited_states,
    named,
    named_exchange,
    state_named,
    whose,
)
from playhead_replay.report.report import Divergence, OutputCheck, Report
from playhead_replay.run.exchanges import lane_names
from playhead_replay.run.run import Run
from playhead_semconv import attributes as a
from playhead_semconv import events as e

MOST_NAMED = 20
"""Largest number of real effects that are listed by name."""


def compare(tape: IndexedTape, now: IndexedTape, run: Run | None = None) -> Report:
    """Compare ``now`` with ``tape``.

    ``run`` is the recorded run, used for its name and step numbers; by default the run on ``tape``.
    """
    return _report(Comparison(tape, now, run or Run.of_tape(tape)))


def _report(comparison: Comparison) -> Report:
    requests = list(exchanges.requests(comparison))
    responses = list(exchanges.responses(comparison))
    effects = list(outputs.effects(comparison))
    states = list(outputs.states(comparison))
    reports = list(compared_reports.reports(comparison))
    printed = outputs.kept_outputs(comparison)
    streams = [one for pair in printed for one in outputs.stream(comparison, *pair)]
    exits = list(outputs.exits(comparison))
    answers = list(outputs.answers(comparison))
    found = [
        *requests,
        *responses,
        *_unheld(comparison),
        *_reads(comparison),
        *_moved(comparison),
        *_checks(comparison),
        *states,
        *reports,
        *effects,
        *streams,
        *answers,
        *exits,
    ]
    found.sort(key=lambda one: one.seq)
    matches, unused = comparison.matching.matches, comparison.matching.unused
    asked = str(len(unused) + comparison.played()), str(len(matches))
    redacted = (fact.attributes.get(a.PLAYHEAD_REDACTED_COUNT, 0) for fact in comparison.tape.facts())
    return Report(
        run=comparison.run.name,
        level=comparison.level,
        boundaries=exchanges.counts(comparison),
        outputs=[
            *(outputs.stream_check(*pair) for pair in printed),
            *outputs.ended(comparison, exits, answers),
            OutputCheck("requests", not requests, *asked),
            OutputCheck("responses", not responses, *exchanges.response_bytes(comparison)),
            *outputs.effects_check(comparison, effects),
            *outputs.state_check(comparison, states),
            *compared_reports.report_check(comparison, reports),
        ],
        divergences=found,
        reads=counts_of_reads(comparison.tape, comparison.now),
        unused=[named_exchange(one) for one in unused],
        steps={step.number: step.span.name for step in comparison.run.steps},
        fidelities=exchanges.of_steps(comparison),
        redacted=sum(map(int, redacted)),
        notes=list(_notes(comparison, any_differs=bool(found))),
        unkept=unkept(comparison.had, comparison.level),
        varied=comparison.varied,
        edited=list(_edited(comparison)),
    )


def _unheld(comparison: Comparison) -> Iterator[Divergence]:
    """Code that could have changed the outside world, because nothing contained it."""
    for fact in comparison.of_kind(UNHELD):
        what = f"not isolated: {fact.attributes.get(a.PLAYHEAD_EFFECT_TARGET, '')}"
        why = f"{whose(fact.attributes)}no boundary records it, and no namespace isolated it"
        yield comparison.live(what, why, fact.seq)


def _reads(comparison: Comparison) -> Iterator[Divergence]:
    """Clock and entropy reads that are not on the tape."""
    for found in live_reads(comparison.tape, comparison.now):
        why = f"the tape holds {found.recorded}, the program read {found.count} more"
        yield comparison.live(f"live {found.kind} in {found.lane}", why, found.seq)


def _moved(comparison: Comparison) -> Iterator[Divergence]:
    """Deliveries out of order, except answers to requests that were themselves out of order."""
    names = lane_names(comparison.now)
    asked = {one.now.id for one in comparison.matching.matches if one.fidelity is Fidelity.MOVED}
    for fact in comparison.now.named(e.PLAYHEAD_MOVED):
        if fact.exchange is None or fact.exchange not in asked:
            lane, id = names.get(fact.lane, f"{fact.lane:016x}"), fact.exchange
            what = lane if id is None else f"{id.kind} {lane}#{id.ordinal}"
            yield Divergence(
                "moved",
                f"moved {what}",
                comparison.step_before(fact.seq),
                after=True,
                detail="delivered out of order, because no other thread could continue",
                seq=fact.seq,
            )


def _checks(comparison: Comparison) -> Iterator[Divergence]:
    """Failed checks, with the step number of the replay."""
    if any(fact.name == e.PLAYHEAD_CHECK for fact in comparison.now.facts()):
        for one in Run.of_tape(comparison.now).failed_checks:
            what = f"check {one.name} failed at {one.span}"
            yield Divergence("check", what, one.step, detail=one.said, seq=one.seq)


def _edited(comparison: Comparison) -> Iterator[str]:
    """Parts that the program was given and that were edited at the replayed fork."""
    for found in comparison.matching.matches:
        part = edited_part(found.now)
        if part:
            yield named(part, found.now, comparison.step_of(found.recorded))
    yield from map(state_named, edited_states(comparison.now))


def _signals(comparison: Comparison) -> Iterator[str]:
    """Signals whose place in the replay may be the reason for a difference."""
    tape, now = (
        Counter(map(_signal, one.named(e.PLAYHEAD_INTERRUPT)))
        for one in (comparison.tape, comparison.now)
    )
    for name in tape - now:
        yield f"{name} arrived during the recording, but its handler did not run in this replay"
    for name in now - tape:
        yield f"{name} arrived in this replay, but is not on the tape"
    computing = (one for one in comparison.tape.named(e.PLAYHEAD_INTERRUPT) if _place(one))
    for fact in islice(computing, MOST_NAMED):
        yield (
            f"{_signal(fact)} arrived while the program was computing ({_place(fact)}):"
            " a replay runs its handler when it executes that line"
        )


def _signal(fact: Fact) -> str:
    return str(fact.attributes.get(a.PLAYHEAD_INTERRUPT_SIGNAL, ""))


def _place(fact: Fact) -> str:
    return str(fact.attributes.get(a.PLAYHEAD_INTERRUPT_PLACE, ""))


def _notes(comparison: Comparison, *, any_differs: bool) -> Iterator[str]:
    if (
        any_differs
        and "hashes" not in comparison.had
        and comparison.start.get(a.PLAYHEAD_RUN_HASH_SEED) == "random"
    ):
        yield ("PYTHONHASHSEED was random in the recording: the order of sets may differ")
    if any_differs:
        yield from _signals(comparison)
    if comparison.killed():
        yield "the tape ends where the run was killed"
    for fact in comparison.now_whole.named(e.PLAYHEAD_STANDSTILL):
        step = comparison.step_before(fact.seq)
        where = "before step 1" if step is None else f"after step {step}"
        threads = "; ".join(map(str, fact.attributes[a.PLAYHEAD_STANDSTILL_THREADS]))
        yield f"the replay was stopped {where}, because no thread could continue: {threads}"
    real = [str(fact.attributes.get(a.PLAYHEAD_EFFECT_TARGET)) for fact in comparison.of_kind(REPEATED)]
    if real:
        more = f" and {len(real) - MOST_NAMED} more" if len(real) > MOST_NAMED else ""
        yield f"repeated for real, as you allowed: {', '.join(real[:MOST_NAMED])}{more}"
    lost: dict[str, list[str]] = {}
    for fact in comparison.tape.named(e.PLAYHEAD_TURN_LOST):
        how = str(fact.attributes[a.PLAYHEAD_TURN_HOW])
        lost.setdefault(str(fact.attributes[a.PLAYHEAD_TURN_THREAD]), []).append(how)
    for name, recorded, printed in outputs.kept_outputs(comparison):
        if recorded.data != printed.data and differing(recorded.data, printed.data) is None:
            yield f"tracebacks on {name} are compared by the frames of the program and the exception"
    if any(found.by_traceback for found in comparison.matching.matches):
        yield "tracebacks in requests are compared by the frames of the program and the exception"
    for thread, ways in lost.items():
        how = ", ".join(dict.fromkeys(ways))
        yield f"{thread} lost its permit in the recording ({how}): its order from then on may differ"
