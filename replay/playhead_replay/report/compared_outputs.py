"""What a replayed program printed, did, said and answered, against its tape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from playhead_core.difference import Difference, body_difference, text_difference
from playhead_core.normalize.tracebacks import HEADER_WORDS, differing
from playhead_replay.report.comparison import AT_THE_END, Comparison
from playhead_replay.report.report import Divergence, DivergenceKind, OutputCheck
from playhead_replay.run.inbound_requests import answer_difference, differs_in_pairs, requests_of
from playhead_replay.run.outputs import Effect, Outputs, OutputStream
from playhead_replay.run.states import differs_in_pairs as of_pairs
from playhead_replay.run.states import state_differences, states_of

CHANGES = {"files", "sqlite", "network", "processes.talk"}
"""Boundaries that write effects to the tape."""


def answers(comparison: Comparison) -> Iterator[Divergence]:
    """Differences in the program's answers to the requests it received."""
    now = {one.exchange.id: one for one in requests_of(comparison.now)} if comparison.came else {}
    for one in comparison.came:
        other = now.get(one.exchange.id)
        if other is None:
            difference = Difference("request", one.key, "(not served)")
        else:
            difference = answer_difference(one, other)
            if difference is not None and differs_in_pairs(one, other):
                comparison.varied.append(f"inbound response to {one.key}")
                continue
        if difference is not None:
            seq = AT_THE_END if other is None else other.exchange.last_seq
            step = comparison.step_before(seq)
            what = f"inbound response to {one.key}"
            yield Divergence("inbound", what, step, after=True, difference=difference, seq=seq)


def ended(
    comparison: Comparison, exits: list[Divergence], answers: list[Divergence]
) -> Iterator[OutputCheck]:
    """How the two processes ended; for a service, what they answered."""
    if not comparison.came:
        yield OutputCheck(
            "exit", not exits, _ending(comparison.outputs), _ending(comparison.outputs_now)
        )
        return
    sides = ["; ".join(map(str, some)) for some in (comparison.came, requests_of(comparison.now))]
    yield OutputCheck("inbound response", not answers, *sides)


def kept_outputs(
    comparison: Comparison,
) -> list[tuple[Literal["stdout", "stderr"], OutputStream, OutputStream]]:
    """What both printed, by stream; empty if the recording does not keep it."""
    if "output" not in comparison.had:
        return []
    tape, now = comparison.outputs, comparison.outputs_now
    return [("stdout", tape.stdout, now.stdout), ("stderr", tape.stderr, now.stderr)]


def stream(
    comparison: Comparison, name: DivergenceKind, tape: OutputStream, now: OutputStream
) -> Iterator[Divergence]:
    """The first difference between two outputs."""
    found = differing(tape.data, now.data)
    if found is None:
        return
    difference = text_difference(*found[:2])
    if difference is not None:
        difference = _at_exception(difference, *found[:2])
    seq = now.seq_at(found[2])
    place = AT_THE_END if seq is None else seq
    yield Divergence(
        name, name, comparison.step_before(place), after=True, difference=difference, seq=place
    )


def _at_exception(found: Difference, tape: bytes, now: bytes) -> Difference:
    """Move a difference from the header of a traceback, which says nothing, to its exception."""
    header = HEADER_WORDS.decode()
    if header not in (found.tape, found.now) or not found.path.startswith("line "):
        return found
    first = int(found.path.removeprefix("line "))
    is_now = found.now == header
    lines = (now if is_now else tape).decode().splitlines()
    for number, line in enumerate(lines[first:], first + 1):
        if line and not line.startswith(" "):
            sides = {"now": line} if is_now else {"tape": line}
            return replace(found, path=f"line {number}", **sides)
    return found


def stream_check(name: str, tape: OutputStream, now: OutputStream) -> OutputCheck:
    """Whether two outputs agree."""
    sizes = f"{len(tape.data)} bytes", f"{len(now.data)} bytes"
    return OutputCheck(name, differing(tape.data, now.data) is None, *sizes)


def exits(comparison: Comparison) -> Iterator[Divergence]:
    """A difference in how the processes ended; a service ends from outside."""
    if comparison.came:
        return
    tape, now = _ending(comparison.outputs), _ending(comparison.outputs_now)
    if tape != now:
        yield Divergence(
            "exit",
            "exit",
            comparison.step_before(AT_THE_END),
            after=True,
            difference=Difference("exit", tape, now),
            seq=AT_THE_END + 1,
        )


def effects(comparison: Comparison) -> Iterator[Divergence]:
    """The first difference in what the programs did to the world."""
    if not comparison.had & CHANGES:
        return
    tape = [effect for effect in comparison.outputs.effects]
    blocked = {seq for *_, seq in comparison.refused()}
    now = [effect for effect in comparison.outputs_now.effects if effect.seq not in blocked]
    for index in range(max(len(tape), len(now))):
        one = tape[index] if index < len(tape) else None
        other = now[index] if index < len(now) else None
        difference = _effect_difference(one, other, ordered=comparison.level == "strict")
        if difference is None:
            continue
        seq = AT_THE_END if other is None else other.seq
        what = f"effect {one or other}"
        step = comparison.step_before(seq)
        yield Divergence("effect", what, step, after=True, difference=difference, seq=seq)
        return


def effects_check(comparison: Comparison, found: list[Divergence]) -> Iterator[OutputCheck]:
    """Whether the effects agree, if the recording keeps them."""
    if comparison.had & CHANGES:
        sides = [str(len(some.effects)) for some in (comparison.outputs, comparison.outputs_now)]
        yield OutputCheck("effects", not found, *sides)


def states(comparison: Comparison) -> Iterator[Divergence]:
    """States in which the replay differs from the tape."""
    sides = states_of(comparison.tape, comparison.run.steps), states_of(comparison.now)
    for recorded, now, difference in state_differences(*sides):
        if recorded and now and of_pairs(recorded, now):
            comparison.varied.append(f"state {now.name}")
            continue
        one = recorded or now
        assert one is not None
        seq = AT_THE_END if now is None else now.seq
        step = comparison.step_before(seq) if recorded is None else recorded.step or None
        yield Divergence("state", one.name, step, after=True, difference=difference, seq=seq)


def state_check(comparison: Comparison, found: list[Divergence]) -> Iterator[OutputCheck]:
    """Whether the states agree, if there are any."""
    sides = [str(len(states_of(tape))) for tape in (comparison.tape, comparison.now)]
    if sides != ["0", "0"]:
        yield OutputCheck("states", not found, *sides)


def _effect_difference(tape: Effect | None, now: Effect | None, *, ordered: bool) -> Difference | None:
    """``ordered``: the level keeps the order of jobs, so rows of a database have the same order."""
    if tape is None or now is None:
        return Difference("effect", str(tape or "(absent)"), str(now or "(absent)"))
    if (tape.kind, tape.target) != (now.kind, now.target):
        return Difference("effect", str(tape), str(now))
    if tape.digest != now.digest:
        if not ordered and tape.rows_digest and tape.rows_digest == now.rows_digest:
            return None
        return Difference("digest of the content", tape.digest, now.digest)
    if tape.content == now.content:
        return None
    return body_difference(tape.body, now.body)


def _ending(outputs: Outputs) -> str:
    return "killed" if outputs.exit is None else str(outputs.exit)
