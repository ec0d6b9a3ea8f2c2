"""Compares a tape with the tape of its replay: the fidelity report."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from playhead_replay.forks.edits_of_run import edited_part, edited_states, named, state_named
from playhead_replay.report.ambient_reads import counts_of_reads, live_reads
from playhead_replay.report.matching import MESSAGES, Match, Matching, match
from playhead_replay.report.report import Divergence, DivergenceKind, OutputCheck, Report
from playhead_replay.report.tracebacks import differing
from playhead_replay.run.exchanges import RecordedExchange, exchanges_of, lane_names
from playhead_replay.run.inbound_requests import answer_difference, differs_in_pairs, requests_of
from playhead_replay.run.outputs import Effect, Outputs, OutputStream
from playhead_replay.run.run import Run
from playhead_replay.run.states import differs_in_pairs as of_pairs
from playhead_replay.run.states import state_differences, states_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.boundaries import BOUNDARIES, CAUSAL, LEVELS, had
from playhead_semconv.difference import (
    Difference,
    body_difference,
    text_difference,
)
from playhead_semconv.facts import Fact, Fidelity, digest_of
from playhead_semconv.process.module_coverage import REPEATED, UNHELD
from playhead_semconv.tape.folds import level_of
from playhead_semconv.tape.indexed_tapes import IndexedTape
from playhead_semconv.tape.slices import served

CHANGES = {"files", "sqlite", "network", "processes.talk"}
"""Boundaries that write effects to the tape."""

MOST_NAMED = 20
"""Largest number of real effects that are listed by name."""

AT_THE_END = 1 << 62
"""Position of a divergence that comes after everything on the *now* tape."""


def compare(tape: IndexedTape, now: IndexedTape, run: Run | None = None) -> Report:
    """Compare ``now`` with ``tape``.

    ``run`` is the recorded run, used for its name and step numbers; by default the run on ``tape``.
    """
    return _Comparison(tape, now, run or Run.of_tape(tape)).report()


class _Comparison:
    """The state of one comparison."""

    def __init__(self, tape: IndexedTape, now: IndexedTape, run: Run) -> None:
        self._tape, self._now, self._run = tape, now, run
        self._now_whole = now
        self._level = level_of(tape.facts())
        start = next(tape.facts(), None)
        self._start = {} if start is None else start.attributes
        self._had = frozenset(had(self._start))
        self._matching: Matching = match(
            exchanges_of(tape), exchanges_of(now), placed="order" in self._had
        )
        self._varied: list[str] = []
        self._came = requests_of(tape)
        if self._came:
            self._leave_out_the_boot()
        self._outputs = Outputs.of_tape(self._tape)
        self._outputs_now = Outputs.of_tape(self._now)
        self._steps = run.step_numbers()
        self._asked = [found.now.first_seq for found in self._matching.matches]

    def _leave_out_the_boot(self) -> None:
        """For a service, compare only what it did for requests.

        Of its start-up phase, only what was blocked counts.
        """
        self._tape, self._now = served(self._tape), served(self._now)
        lanes = {fact.lane for fact in self._tape.facts()}
        self._matching.unused = [one for one in self._matching.unused if one.id.lane in lanes]

    def report(self) -> Report:
        requests = list(self._requests())
        responses = list(self._responses())
        effects = list(self._effects()) if self._had & CHANGES else []
        states = list(self._states())
        outputs = self._kept_outputs()
        streams = [one for output in outputs for one in self._stream(*output)]
        exits = [] if self._came else list(self._exit())
        answers = list(self._answers())
        found = [
            *requests,
            *responses,
            *self._unheld(),
            *self._reads(),
            *self._moved(),
            *self._checks(),
            *states,
            *effects,
            *streams,
            *answers,
            *exits,
        ]
        found.sort(key=lambda one: one.seq)
        return Report(
            run=self._run.name,
            level=self._level,
            boundaries=self._counts(),
            outputs=[
                *(self._stream_check(*output) for output in outputs),
                *self._ended(exits, answers),
                OutputCheck(
                    "requests",
                    not requests,
                    str(len(self._matching.unused) + self._played()),
                    str(len(self._matching.matches)),
                ),
                OutputCheck("responses", not responses, *self._response_bytes()),
                *self._effects_check(effects),
                *self._state_check(states),
            ],
            divergences=found,
            reads=counts_of_reads(self._tape, self._now),
            unused=[self._named(one) for one in self._matching.unused],
            steps={step.number: step.span.name for step in self._run.steps},
            redacted=sum(
                int(fact.attributes.get(a.PLAYHEAD_REDACTED_COUNT, 0)) for fact in self._tape.facts()
            ),
            notes=list(self._notes(any_differs=bool(found))),
            unkept=self._unkept(),
            varied=self._varied,
            edited=list(self._edited()),
        )

    def _edited(self) -> Iterator[str]:
        """Parts that the program was given and that were edited at the replayed fork."""
        for found in self._matching.matches:
            part = edited_part(found.now)
            if part:
                yield named(part, found.now, self._step_of(found.recorded))
        yield from map(state_named, edited_states(self._now))

    def _unkept(self) -> dict[str, str]:
        """Boundaries that the recording does not keep, with the lowest level that does."""
        level = self._level if self._level in LEVELS else CAUSAL
        wanted = max(LEVELS.index(CAUSAL), LEVELS.index(level))
        return {
            row.name: row.level
            for row in BOUNDARIES
            if row.level is not None and LEVELS.index(row.level) <= wanted and row.name not in self._had
        }

    def _notes(self, *, any_differs: bool) -> Iterator[str]:
        if (
            any_differs
            and "hashes" not in self._had
            and self._start.get(a.PLAYHEAD_RUN_HASH_SEED) == "random"
        ):
            yield (
                "PYTHONHASHSEED was random when recorded: what depends on the order of a set may differ"
            )
        if self._killed():
            yield "the tape ends where the run was killed"
        for fact in self._now_whole.named(e.PLAYHEAD_STANDSTILL):
            step = self._step_before(fact.seq)
            where = "before step 1" if step is None else f"after step {step}"
            threads = "; ".join(map(str, fact.attributes[a.PLAYHEAD_STANDSTILL_THREADS]))
            yield f"the replay stands still {where}, and was ended there: {threads}"
        real = [str(fact.attributes.get(a.PLAYHEAD_EFFECT_TARGET)) for fact in self._of_kind(REPEATED)]
        if real:
            more = f" and {len(real) - MOST_NAMED} more" if len(real) > MOST_NAMED else ""
            yield f"done again for real, as you said: {', '.join(real[:MOST_NAMED])}{more}"
        lost: dict[str, list[str]] = {}
        for fact in self._tape.named(e.PLAYHEAD_TURN_LOST):
            how = str(fact.attributes[a.PLAYHEAD_TURN_HOW])
            lost.setdefault(str(fact.attributes[a.PLAYHEAD_TURN_THREAD]), []).append(how)
        for name, recorded, printed in self._kept_outputs():
            if recorded.data != printed.data and differing(recorded.data, printed.data) is None:
                yield f"tracebacks on {name} are compared by the frames of the program and the exception"
        for thread, ways in lost.items():
            how = ", ".join(dict.fromkeys(ways))
            yield f"{thread} lost its turn when recorded ({how}): from there on its order is chance"

    def _ended(self, exits: list[Divergence], answers: list[Divergence]) -> Iterator[OutputCheck]:
        if not self._came:
            yield OutputCheck("exit", not exits, _ending(self._outputs), _ending(self._outputs_now))
            return
        sides = ["; ".join(map(str, some)) for some in (self._came, requests_of(self._now))]
        yield OutputCheck("inbound response", not answers, *sides)

    def _killed(self) -> bool:
        if self._came:
            return any(one.exchange.end is None for one in self._came)
        return self._outputs.exit is None

    def _answers(self) -> Iterator[Divergence]:
        """Differences in the program's answers to the requests it received."""
        now = {one.exchange.id: one for one in requests_of(self._now)} if self._came else {}
        for one in self._came:
            other = now.get(one.exchange.id)
            if other is None:
                difference = Difference("request", one.key, "(not served)")
            else:
                difference = answer_difference(one, other)
                if difference is not None and differs_in_pairs(one, other):
                    self._varied.append(f"inbound response to {one.key}")
                    continue
            if difference is not None:
                seq = AT_THE_END if other is None else other.exchange.last_seq
                step = self._step_before(seq)
                what = f"inbound response to {one.key}"
                yield Divergence("inbound", what, step, after=True, difference=difference, seq=seq)

    def _counts(self) -> dict[str, dict[Fidelity, int]]:
        counts: dict[str, dict[Fidelity, int]] = {}

        def add(kind: str, fidelity: Fidelity) -> None:
            of_kind = counts.setdefault(kind, {})
            of_kind[fidelity] = of_kind.get(fidelity, 0) + 1

        for found in self._matching.matches:
            add(found.now.id.kind, found.fidelity)
        for recorded in self._matching.unused:
            add(recorded.id.kind, Fidelity.UNUSED)
        for kind, *_ in self._refused():
            add(kind, Fidelity.BLOCKED)
        return counts

    def _played(self) -> int:
        return sum(1 for found in self._matching.matches if found.recorded is not None)

    def _step_of(self, recorded: RecordedExchange | None) -> int | None:
        if recorded is None:
            return None
        return self._steps.get((recorded.instance, str(recorded.id)))

    def _step_before(self, seq: int) -> int | None:
        """The last step that had been requested when the fact ``seq`` of *now* was written."""
        for found in reversed(self._matching.matches[: bisect_right(self._asked, seq)]):
            step = self._step_of(found.recorded or found.nearest)
            if step is not None:
                return step
        return None

    def _named(self, one: RecordedExchange) -> str:
        return f"{one.name} {one.key}"

    def _refused(self) -> Iterator[tuple[str, str, str, int]]:
        """Blocked effects other than exchanges: boundary, target, code that did it, number on *now*."""
        for fact in self._now_whole.named(e.PLAYHEAD_EFFECT):
            at = fact.attributes
            if at.get(a.PLAYHEAD_FIDELITY) == Fidelity.BLOCKED:
                yield (
                    str(at.get(a.PLAYHEAD_EFFECT_KIND, "effect")),
                    str(at.get(a.PLAYHEAD_EFFECT_TARGET, "")),
                    _whose(at),
                    fact.seq,
                )

    def _requests(self) -> Iterator[Divergence]:
        for found in self._matching.matches:
            # Live requests were allowed; differences that result from them are found elsewhere.
            if found.fidelity not in (Fidelity.EXACT, Fidelity.VOLATILE, Fidelity.LIVE):
                yield self._request(found)
        for kind, target, who, seq in self._refused():
            yield Divergence(
                "blocked",
                f"blocked {kind} {target}",
                self._step_before(seq),
                after=True,
                detail=f"{who}nothing on the tape answers it",
                seq=seq,
            )
        for recorded in self._matching.unused:
            yield Divergence(
                "unused",
                f"{self._named(recorded)} was not asked for",
                self._step_of(recorded),
                seq=AT_THE_END,
            )

    def _unheld(self) -> Iterator[Divergence]:
        """Code that could have changed the outside world, because nothing contained it."""
        for fact in self._of_kind(UNHELD):
            what = f"not kept from the world: {fact.attributes.get(a.PLAYHEAD_EFFECT_TARGET, '')}"
            why = f"{_whose(fact.attributes)}no boundary sees it, and no namespace held it"
            yield self._live(what, why, fact.seq)

    def _of_kind(self, kind: str) -> Iterator[Fact]:
        """Effects of the replay, including those of its start-up phase."""
        for fact in self._now_whole.named(e.PLAYHEAD_EFFECT):
            if fact.attributes.get(a.PLAYHEAD_EFFECT_KIND) == kind:
                yield fact

    def _request(self, found: Match) -> Divergence:
        now, kind = found.now, _KINDS[found.fidelity]
        near = found.recorded or found.nearest
        detail = ""
        if found.fidelity is Fidelity.MOVED and found.recorded is not None:
            detail = f"answered by {found.recorded.name}, asked in another place or order"
        elif found.exhausted and found.nearest is not None:
            detail = f"{found.nearest.name} matches; every recording of it is used"
        elif found.fidelity is Fidelity.BLOCKED and now.end is not None and now.end.error is not None:
            detail = "" if found.nearest is not None else now.end.error.message.splitlines()[0]
        nearest = found.nearest.name if found.nearest is not None and found.difference else ""
        step = self._step_of(near)
        same_place = near is not None and near.id == now.id
        if found.fidelity is Fidelity.BLOCKED and not same_place:
            step = self._step_before(now.first_seq - 1)
        return Divergence(
            kind,
            f"{found.fidelity} {self._named(now)}",
            step,
            after=found.fidelity is Fidelity.BLOCKED and not same_place,
            difference=found.difference,
            nearest=nearest,
            changed=bool(nearest)
            and near is not None
            and near.id.kind == now.id.kind
            and near.key == now.key,
            detail=detail,
            seq=now.first_seq,
        )

    def _responses(self) -> Iterator[Divergence]:
        """Answers that did not reach the program as they were recorded."""
        for found in self._matching.matches:
            recorded = found.recorded
            if recorded is None:
                continue
            difference = _answer_difference(recorded, found.now)
            if difference is not None:
                yield Divergence(
                    "response",
                    f"response of {self._named(found.now)}",
                    self._step_of(recorded),
                    difference=difference,
                    seq=found.now.first_seq,
                )

    def _response_bytes(self) -> tuple[str, str]:
        played = [(one.recorded, one.now) for one in self._matching.matches if one.recorded is not None]
        sides: list[str] = []
        for exchanges in ([one for one, _ in played], [one for _, one in played]):
            sizes = [size for one in exchanges for size in one.chunk_sizes]
            sides.append(f"{sum(sizes)} bytes in {len(sizes)} chunks")
        return sides[0], sides[1]

    def _kept_outputs(self) -> list[tuple[Literal["stdout", "stderr"], OutputStream, OutputStream]]:
        if "output" not in self._had:
            return []
        tape, now = self._outputs, self._outputs_now
        return [("stdout", tape.stdout, now.stdout), ("stderr", tape.stderr, now.stderr)]

    def _effects_check(self, found: list[Divergence]) -> Iterator[OutputCheck]:
        if self._had & CHANGES:
            sides = [str(len(some.effects)) for some in (self._outputs, self._outputs_now)]
            yield OutputCheck("effects", not found, *sides)

    def _stream(
        self, name: DivergenceKind, tape: OutputStream, now: OutputStream
    ) -> Iterator[Divergence]:
        found = differing(tape.data, now.data)
        if found is None:
            return
        difference = text_difference(*found[:2])
        seq = now.seq_at(found[2])
        place = AT_THE_END if seq is None else seq
        yield Divergence(
            name, name, self._step_before(place), after=True, difference=difference, seq=place
        )

    def _stream_check(self, name: str, tape: OutputStream, now: OutputStream) -> OutputCheck:
        sizes = f"{len(tape.data)} bytes", f"{len(now.data)} bytes"
        return OutputCheck(name, differing(tape.data, now.data) is None, *sizes)

    def _exit(self) -> Iterator[Divergence]:
        tape, now = _ending(self._outputs), _ending(self._outputs_now)
        if tape != now:
            yield Divergence(
                "exit",
                "exit",
                self._step_before(AT_THE_END),
                after=True,
                difference=Difference("exit", tape, now),
                seq=AT_THE_END + 1,
            )

    def _reads(self) -> Iterator[Divergence]:
        """Clock and entropy reads that are not on the tape."""
        for found in live_reads(self._tape, self._now):
            why = f"the tape holds {found.recorded}, the program read {found.count} more"
            yield self._live(f"live {found.kind} in {found.lane}", why, found.seq)

    def _live(self, what: str, why: str, seq: int) -> Divergence:
        return Divergence("live", what, self._step_before(seq), after=True, detail=why, seq=seq)

    def _moved(self) -> Iterator[Divergence]:
        """Deliveries out of order, except answers to requests that were themselves out of order."""
        names = lane_names(self._now)
        asked = {one.now.id for one in self._matching.matches if one.fidelity is Fidelity.MOVED}
        for fact in self._now.named(e.PLAYHEAD_MOVED):
            if fact.exchange is None or fact.exchange not in asked:
                lane, id = names.get(fact.lane, f"{fact.lane:016x}"), fact.exchange
                what = lane if id is None else f"{id.kind} {lane}#{id.ordinal}"
                yield Divergence(
                    "moved",
                    f"moved {what}",
                    self._step_before(fact.seq),
                    after=True,
                    detail="let in out of order: nobody else could go on",
                    seq=fact.seq,
                )

    def _checks(self) -> Iterator[Divergence]:
        """Failed checks, with the step number of the replay."""
        if any(fact.name == e.PLAYHEAD_CHECK for fact in self._now.facts()):
            for one in Run.of_tape(self._now).failed_checks:
                what = f"check {one.name} failed at {one.span}"
                yield Divergence("check", what, one.step, detail=one.said, seq=one.seq)

    def _states(self) -> Iterator[Divergence]:
        """States in which the replay differs from the tape."""
        sides = states_of(self._tape, self._run.steps), states_of(self._now)
        for recorded, now, difference in state_differences(*sides):
            if recorded and now and of_pairs(recorded, now):
                self._varied.append(f"state {now.name}")
                continue
            one = recorded or now
            assert one is not None
            seq = AT_THE_END if now is None else now.seq
            step = self._step_before(seq) if recorded is None else recorded.step or None
            yield Divergence("state", one.name, step, after=True, difference=difference, seq=seq)

    def _state_check(self, found: list[Divergence]) -> Iterator[OutputCheck]:
        sides = [str(len(states_of(tape))) for tape in (self._tape, self._now)]
        if sides != ["0", "0"]:
            yield OutputCheck("states", not found, *sides)

    def _effects(self) -> Iterator[Divergence]:
        tape = [effect for effect in self._outputs.effects]
        blocked = {seq for *_, seq in self._refused()}
        now = [effect for effect in self._outputs_now.effects if effect.seq not in blocked]
        for index in range(max(len(tape), len(now))):
            one = tape[index] if index < len(tape) else None
            other = now[index] if index < len(now) else None
            difference = _effect_difference(one, other)
            if difference is None:
                continue
            seq = AT_THE_END if other is None else other.seq
            what = f"effect {one or other}"
            step = self._step_before(seq)
            yield Divergence("effect", what, step, after=True, difference=difference, seq=seq)
            return


_KINDS: dict[Fidelity, DivergenceKind] = {
    Fidelity.MOVED: "moved",
    Fidelity.CHANGED: "request",
    Fidelity.BLOCKED: "blocked",
    Fidelity.LIVE: "live",
}


def _answer_difference(tape: RecordedExchange, now: RecordedExchange) -> Difference | None:
    if tape.status_code != now.status_code:
        return Difference("status", str(tape.status_code), str(now.status_code))
    if tape.chunk_sizes != now.chunk_sizes:
        sizes = [" ".join(map(str, one.chunk_sizes)) or "(none)" for one in (tape, now)]
        return Difference("chunk sizes", *sizes)
    if tape.end is not None and tape.end.digest and digest_of(tape.response) != tape.end.digest:
        # The cause does not matter: the program did not get what was recorded, whether it noticed or
        # not.
        sides = [digest.hex()[:16] for digest in (tape.end.digest, digest_of(tape.response))]
        return Difference("digest of the recorded bytes", *sides)
    if tape.response != now.response:
        return body_difference(tape.response, now.response)
    if _how(tape) != _how(now) and not _let_go(now):
        return Difference("end", _how(tape), _how(now))
    return None


def _let_go(now: RecordedExchange) -> bool:
    """Whether the program did not wait for the end of an exchange of messages."""
    messages = now.id.kind in MESSAGES
    return messages and now.end is not None and now.end.how == "abandoned"


def _how(one: RecordedExchange) -> str:
    if one.end is None:
        return "unanswered"
    error = one.end.error
    if error is not None and error.qualname == "CancelledError":
        return f"{one.end.how}: {error.qualname}"  # its message contains memory addresses
    if error is not None:
        return f"{one.end.how}: {error.qualname}: {error.message}"
    return one.end.how


def _whose(at: Mapping[str, Any]) -> str:
    """Library and place, as ``psycopg in agent.py:12: ``; empty if unknown."""
    found = [str(at.get(name, "")) for name in (a.PLAYHEAD_EFFECT_LIBRARY, a.PLAYHEAD_EFFECT_PLACE)]
    text = " in ".join(filter(None, found))
    return f"{text}: " if text else ""


def _effect_difference(tape: Effect | None, now: Effect | None) -> Difference | None:
    if tape is None or now is None:
        return Difference("effect", str(tape or "(absent)"), str(now or "(absent)"))
    if (tape.kind, tape.target) != (now.kind, now.target):
        return Difference("effect", str(tape), str(now))
    if tape.digest != now.digest:
        return Difference("digest of the content", tape.digest, now.digest)
    if tape.content == now.content:
        return None
    return body_difference(tape.body, now.body)


def _ending(outputs: Outputs) -> str:
    return "killed" if outputs.exit is None else str(outputs.exit)
