"""A run, put together again from its stored spans and its tape.

>>> from playhead_replay import Run, read_tape_file
>>> recorded = read_tape_file(example_tape)
>>> run = Run.of_tape(recorded.tape, recorded.spans)
>>> run.status, [(step.number, step.span.name) for step in run.steps]
('success', [(1, 'chat gpt-4o')])
>>> [exchange] = run.exchanges
>>> exchange.name, exchange.status_code, exchange.request
('main#0', 200, b'{"model":"gpt-4o"}')
>>> [len(chunk.data) for chunk in exchange.chunks]
[5, 7]
"""

from __future__ import annotations

import threading
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import wraps
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from playhead_core.errors import CorruptTape, TapeMissing
from playhead_core.otlp.log_records import LogLine
from playhead_core.reports import ProgramReport
from playhead_core.tape.folds import is_inbound
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_core.tape.protocols import Tape
from playhead_core.tape.slices import AGED_OUT, SlicedTape, served, slice_of, without_parts
from playhead_core.tape.span_starts import TELL_STARTS
from playhead_genai.prices import Cost, cost_of
from playhead_genai.scores import Score
from playhead_genai.steps import Nesting, Role
from playhead_replay.logs import (
    NO_LOGS,
    RunLogs,
    content_of,
    report_in,
    reports_of,
    scores_of,
    with_steps,
)
from playhead_replay.run.command import Command
from playhead_replay.run.exchanges import RecordedExchange, exchanges_of
from playhead_replay.run.held_tapes import Gap, gaps_of, held
from playhead_replay.run.histories import GrowingHistory
from playhead_replay.run.inbound_requests import InboundRequest, requests_of
from playhead_replay.run.linked_tape import linked
from playhead_replay.run.messages import Messages, messages_of
from playhead_replay.run.outputs import Outputs
from playhead_replay.run.spans import Span, SpanReader, grow, spans_of, walked
from playhead_replay.run.states import State, states_of
from playhead_replay.run.steps import Step, nesting_of, number_steps, role_of
from playhead_replay.run.store_shape import StoreLike
from playhead_replay.run.token_usage import TokenUsage, sum_of, token_bearers, was_played
from playhead_replay.run.unnamed_calls import add_realtime_calls, join_attempts, tell_calls
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.values import GenAiOperationName


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check function that failed at a span."""

    name: str
    span: str
    """Name of the span."""
    said: str
    """Why it failed."""
    step: int | None
    """The step that the span is or belongs to; None if there is none."""
    seq: int


NONSENSE = (
    ArithmeticError,
    AttributeError,
    DecodeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Exceptions raised by facts and spans that are inconsistent."""

T = TypeVar("T")

SPAN_BYTES, TAPE_BYTES = 2000, 8 << 20
"""Approximate memory of a span and its derived data, beyond its bytes; and of a tape."""

CHECK_WORDS = (a.PLAYHEAD_CHECK_NAME, a.PLAYHEAD_SPAN_NAME, a.PLAYHEAD_CHECK_SAID)


def once_per_run(derive: Callable[[Run], T]) -> Callable[[Run], T]:
    """Decorate a function of a run: each run computes its result once. Callers must not change it."""

    @wraps(derive)
    def derived(run: Run) -> T:
        return run.once(derive)

    return derived


@dataclass(slots=True)
class Run:
    """One execution of an agent. Thread-safe: it does not change after it is loaded."""

    name: str
    """``refund-7``; the trace id if no store gave a name."""
    trace_id: str
    agent: str
    status: str
    """running, success, failure, partial or interrupted."""
    mode: str
    origin: str
    started_ns: int
    ended_ns: int | None
    """Last sign of life if it was interrupted; None while it runs."""
    roots: list[Span]
    """The tree of spans, finished and pending."""
    steps: list[Step]
    exchanges: list[RecordedExchange]
    """In order of their requests, process by process."""
    tapes: list[IndexedTape]
    """One per process instance, in order of their start."""
    gaps: list[Gap] = field(default_factory=list[Gap])
    logs: RunLogs = NO_LOGS
    """Log records; those of a store can be read while it is open."""
    scores: list[Score] = field(default_factory=list[Score])
    """Results of evaluations, by time."""
    reported: list[LogLine] = field(default_factory=list[LogLine])
    """Log records that may be reports of programs."""
    size_bytes: int = field(default=0, compare=False)
    """Approximate memory use of a run from a store."""
    _nesting: Nesting[str] | None = field(default=None, init=False, repr=False, compare=False)
    _cost: Cost | None = field(default=None, init=False, repr=False, compare=False)
    """The cost that the store has summed up, call by call."""
    _derived: dict[Any, Any] = field(
        default_factory=dict[Any, Any], init=False, repr=False, compare=False
    )
    """Results of functions with `once_per_run`."""
    _lock: threading.RLock = field(
        default_factory=threading.RLock, init=False, repr=False, compare=False
    )

    @classmethod
    def load(cls, store: StoreLike, trace_id: str) -> Run:
        """The run of a trace id (or of any name that ``store`` resolves). `RunUnknown`."""
        summary = store.resolve(trace_id)
        trace = bytes.fromhex(summary.trace_id)
        tapes = [
            slice_of(held(linked(store, store.tape_of(instance, trace))), trace)
            for instance in without_parts([bytes.fromhex(one) for one in summary.instances], trace)
        ]
        reader = SpanReader()
        finished: list[Span] = []
        size_bytes = 0
        for stored in store.spans(trace):
            size_bytes += len(stored.otlp)
            finished += reader.spans(stored.otlp)
        logs = RunLogs(lambda wanted: (one.otlp for one in store.logs(trace, wanted)))
        run = cls._of(tapes, finished, summary.trace_id, logs)
        run.name, run.agent = summary.name, summary.agent
        run.status, run.mode, run.origin = summary.status, summary.mode, summary.origin
        run.started_ns, run.ended_ns = summary.started_ns, summary.ended_ns
        run._cost = Cost(Decimal(str(summary.cost_usd or 0)), tuple(summary.unpriced))
        run.size_bytes = size_bytes + SPAN_BYTES * len(finished) + TAPE_BYTES * len(tapes)
        return run

    @classmethod
    def of_tape(cls, tape: Tape, spans: Iterable[bytes] = (), name: str = "") -> Run:
        """The run on one tape, with its finished spans if they are known."""
        return cls.of_tapes([tape], spans, name)

    @classmethod
    def of_tapes(
        cls,
        tapes: Sequence[Tape],
        spans: Iterable[bytes] = (),
        name: str = "",
        logs: Sequence[bytes] = (),
    ) -> Run:
        """The run that began on the first of ``tapes``, with its finished spans if they are known.

        ``logs``: its log records, as OTLP `ResourceLogs` bytes.

        `CorruptTape` if playhead cannot have written them.
        """
        at_hand = [held(tape) for tape in tapes]
        try:
            reader = SpanReader()
            finished = [span for otlp in spans for span in reader.spans(otlp)]
            trace_id = _trace_of(at_hand).hex() or (finished[0].trace_id if finished else "")
            run = cls._of(at_hand, finished, trace_id, RunLogs.of_file(logs))
            run._summarize(finished)
        except NONSENSE as problem:
            raise CorruptTape(
                f"{name or 'the tape'} holds what no version of playhead writes",
                cause=f"{type(problem).__name__}: {problem}",
            ) from problem
        run.name = name or trace_id or (at_hand[0].instance.hex() if at_hand else "")
        return run

    @classmethod
    def _of(cls, tapes: list[IndexedTape], finished: list[Span], trace_id: str, logs: RunLogs) -> Run:
        content, scores, reported = logs.content()
        has_events = False
        for span in finished:
            if span.events or span.span_id in content:
                logged = content.get(span.span_id, ())
                span.attributes.update(content_of(span.events, logged, span.attributes))
                has_events = True
        roots = grow(
            [span for span in finished if span.trace_id == trace_id],
            [
                fact
                for tape in tapes
                for fact in tape.named(*TELL_STARTS)
                if fact.trace_id.hex() == trace_id
            ],
        )
        if len(tapes) > 1:
            order = {span.span_id: number for number, span in enumerate(walked(roots))}
            tapes = sorted(tapes, key=lambda tape: (_rank(tape), _first_request(tape, order)))
        exchanges = [recorded for tape in tapes for recorded in exchanges_of(tape, trace_id)]
        add_realtime_calls(roots, exchanges)
        nesting = nesting_of(roots)
        steps = number_steps(roots, nesting)
        if told := tell_calls(steps, exchanges):
            nesting = nesting_of(roots)
            own = {step.span.span_id for step in steps}
            if any(span.span_id not in own for span in told):  # a call inside of a step is a step, too
                steps = number_steps(roots, nesting)
        run = cls(
            name=trace_id,
            trace_id=trace_id,
            agent="",
            status="success",
            mode="record",
            origin="",
            started_ns=0,
            ended_ns=None,
            roots=roots,
            steps=join_attempts(steps, exchanges),
            exchanges=exchanges,
            tapes=tapes,
            gaps=[gap for tape in tapes for gap in gaps_of(tape)],
            logs=logs,
            reported=reported,
        )
        run._nesting = nesting
        run.scores = scores_of(run.spans if scores or has_events else (), scores)
        return run

    def _summarize(self, finished: Iterable[Span]) -> None:
        """Derive from tapes and spans what the summary in a store says."""
        times = array("q", (fact.time_ns for tape in self.tapes for fact in tape.facts()))
        times.extend(time for span in finished for time in (span.started_ns, span.ended_ns or 0))
        if times:
            self.started_ns, self.ended_ns = min(times), max(times)
        if self.tapes:
            first = self.tapes[0]
            at = next(first.facts()).attributes if len(first) else {}
            self.mode = str(at.get(a.PLAYHEAD_RUN_MODE, "record"))
            self.origin = str(at.get(a.PLAYHEAD_RUN_ORIGIN, ""))
            self.agent = str(at.get(a.PLAYHEAD_RUN_AGENT, ""))
            self.status = _status_of(first)

    @property
    def lost(self) -> list[Gap]:
        """The gaps that are a loss of facts."""
        return [gap for gap in self.gaps if gap.reason != AGED_OUT]

    @property
    def aged_out(self) -> int:
        """Number of facts that aged out: a service did them outside any request."""
        return sum(gap.last - gap.first + 1 for gap in self.gaps if gap.reason == AGED_OUT)

    @property
    def tape(self) -> IndexedTape:
        """The tape of the process in which the run began. `TapeMissing` if none was recorded."""
        for tape in self.tapes:
            if len(tape):
                return tape
        raise TapeMissing(
            f"{self.name} has no tape: only its spans were recorded",
            hint="record it with its tape: playhead record SCRIPT",
        )

    @property
    def command(self) -> Command:
        """How it was started. `TapeMissing` if no tape was recorded."""
        return Command.of_tape(self.tape)

    @property
    def outputs(self) -> Outputs:
        """Outputs of its first process; for a service, only for its requests. `TapeMissing`."""
        return Outputs.of_tape(served(self.tape) if self.requests else self.tape)

    @property
    def requests(self) -> list[InboundRequest]:
        """Requests received by its first process; empty if the run is the process itself."""
        return requests_of(self.tape)

    @property
    @once_per_run
    def spans(self) -> list[Span]:
        """All spans, depth first, in order of start."""
        return walked(self.roots)

    @property
    def usage(self) -> TokenUsage:
        """Tokens of all its calls, except those that a fork or a resume played from its tape."""
        return sum_of(span for span in self.token_bearers if not was_played(span))

    @property
    def played_usage(self) -> TokenUsage:
        """Tokens of the calls that a fork or a resume played from its tape; its origin used them."""
        return sum_of(span for span in self.token_bearers if was_played(span))

    @property
    @once_per_run
    def calls(self) -> list[Step]:
        """Steps that are model calls."""
        return [step for step in self.steps if role_of(step.span) >= Role.CALL]

    @property
    @once_per_run
    def token_bearers(self) -> list[Span]:
        """The spans whose tokens count, each token once; others only sum them up or repeat them."""
        return token_bearers(self.roots, self._nesting)

    @property
    def cost(self) -> Cost:
        """Cost of all its calls, except those that a fork or a resume played from its tape."""
        if self._cost is None:
            self._cost = cost_of(
                (span.attributes, span.started_ns) for span in self.token_bearers if not was_played(span)
            )
        return self._cost

    @property
    def errors(self) -> list[Step]:
        """Steps that failed."""
        return [step for step in self.steps if step.span.failed]

    @property
    def failed_checks(self) -> list[FailedCheck]:
        """Check functions that failed, in order."""
        found: list[FailedCheck] = []
        for tape in self.tapes:
            for fact in tape.facts():
                if fact.name == e.PLAYHEAD_CHECK:
                    name, span, said = (str(fact.attributes.get(word, "")) for word in CHECK_WORDS)
                    step = self.step_of(fact.span_id.hex())
                    number = None if step is None else step.number
                    found.append(FailedCheck(name, span, said, number, fact.seq))
        return found

    @property
    @once_per_run
    def states(self) -> list[State]:
        """States reported by its processes, in order."""
        return [state for tape in self.tapes for state in states_of(tape, self.steps)]

    @property
    @once_per_run
    def reports(self) -> list[ProgramReport]:
        """What its programs reported about themselves, by time, each with its step."""
        logged = [one for line in self.reported if (one := report_in(line)) is not None]
        found = reports_of(self.tapes, self.spans, logged)
        return with_steps(found, self.steps, self.steps_of_spans()) if found else []

    def once(self, derive: Callable[[Run], T]) -> T:
        """Return ``derive(self)``, computed once. See `once_per_run`."""
        if derive not in self._derived:
            with self._lock:  # so that other threads wait for the result
                if derive not in self._derived:
                    self._derived[derive] = derive(self)
        return self._derived[derive]

    def step(self, number: int) -> Step | None:
        """The step with this number, counted from 1."""
        return self.steps[number - 1] if 0 < number <= len(self.steps) else None

    def step_of(self, span_id: str) -> Step | None:
        """The step that this span is, or that encloses it."""
        return self._owners().get(span_id)

    def exchanges_of(self, step: Step) -> list[RecordedExchange]:
        """The attempts of a step, in order of their requests."""
        if not self.exchanges:
            return []
        own = self._own_spans(step)
        found = [one for span_id in own for one in self._by_span().get(span_id, ())]
        return [exchange for _, exchange in sorted(found, key=lambda one: one[0])]

    def log_lines(self, step: Step) -> Iterator[LogLine]:
        """The log records of the span of a step and of spans in it that are not steps themselves."""
        owners = self.steps_of_spans()
        own = [span.span_id for span in step.span.walk() if owners.get(span.span_id) == step.number]
        return self.logs.lines(own)

    def scores_of(self, step: Step) -> list[Score]:
        """The scores of the span of a step and of spans in it that are not steps themselves."""
        owners = self.steps_of_spans() if self.scores else {}
        return [one for one in self.scores if owners.get(one.span_id) == step.number]

    def told_by(self, span: Span) -> str:
        """Id of the span that is the step of the call which ``span`` reports, too; empty if none is."""
        return (self._nesting and self._nesting.told_by(span.span_id)) or ""

    @once_per_run
    def steps_of_spans(self) -> dict[str, int]:
        """Numbers of the innermost steps that spans are or belong to, by span id."""
        numbers = {step.span.span_id: step.number for step in self.steps}
        for span in self.spans:  # parents come before their children
            if span.span_id in numbers:
                for child in span.children:
                    numbers.setdefault(child.span_id, numbers[span.span_id])
        return numbers

    def messages(self, step: Step, history: GrowingHistory | None = None) -> Messages:
        """Input and output messages of the call of a step.

        With the ``history`` of a conversation whose calls are read in order: what the step adds to it.
        """
        return messages_of(step.span.attributes, self.exchanges_of(step), history)

    def with_tape(self, tape: Tape) -> Run:
        """The same run with a tape; it has only spans, to which the exchanges on ``tape`` belong."""
        at_hand = held(tape)
        made = replace(self, tapes=[at_hand], exchanges=exchanges_of(at_hand, self.trace_id))
        made._nesting = self._nesting
        return made

    def step_numbers(self) -> dict[tuple[str, str], int]:
        """Step numbers by process instance and exchange id."""
        owners = {span_id: step.number for step in self.steps for span_id in self._own_spans(step)}
        return {
            (exchange.instance, str(exchange.id)): owners[exchange.span_id]
            for exchange in self.exchanges
            if exchange.span_id in owners
        }

    @once_per_run
    def _owners(self) -> dict[str, Step]:
        """The step that a span is, or that encloses it, by span id; the first one if there are two."""
        return {id: step for step in reversed(self.steps) for id in self._own_spans(step)}

    @once_per_run
    def _by_span(self) -> dict[str, list[tuple[int, RecordedExchange]]]:
        """Exchanges by span, each with its place in `exchanges`."""
        found = defaultdict[str, list[tuple[int, RecordedExchange]]](list)
        for place, exchange in enumerate(self.exchanges):
            # A process that an SDK starts during a request is not an attempt.
            if exchange.id.kind != "process":
                found[exchange.span_id].append((place, exchange))
        return found

    @once_per_run
    def _retold(self) -> dict[str, list[str]]:
        """Ids of spans that report a tool call again, by that of the step."""
        found = defaultdict[str, list[str]](list)
        for span in self.spans:
            if span.operation == GenAiOperationName.EXECUTE_TOOL and (told := self.told_by(span)):
                found[told].append(span.span_id)
        return found

    def _own_spans(self, step: Step) -> set[str]:
        own = step.span.span_id
        return {own, *(attempt.span_id for attempt in step.attempts), *self._retold().get(own, ())}


def _status_of(tape: IndexedTape) -> str:
    came = requests_of(tape)
    if came:
        if any(one.exchange.end is None for one in came):
            return "interrupted"
        return "failure" if any(one.failed for one in came) else "success"
    ended = Outputs.exit_of(tape)
    return "interrupted" if ended is None else "failure" if ended.code else "success"


def _trace_of(tapes: Sequence[IndexedTape]) -> bytes:
    """Trace id of the request that the first tape is about, else of the process that wrote it."""
    came = [one.exchange.trace_id for tape in tapes[:1] for one in requests_of(tape)]
    traces = (fact.trace_id for tape in tapes for fact in tape.facts() if any(fact.trace_id))
    return next((one for one in came if any(one)), b"") or next(traces, b"")


def trace_of(tapes: Sequence[IndexedTape], spans: Sequence[bytes]) -> str:
    """The trace id of the run with these tapes and spans, hex; empty if they do not say it."""
    found = _trace_of(tapes).hex()
    return found or next((span.trace_id for otlp in spans for span in spans_of(otlp)), "")


def _first_request(tape: IndexedTape, order: dict[str, int]) -> int:
    """Sort key: the request that calls another service precedes the request that it causes there.

    ``order``: positions of spans in the tree. Clocks of two machines may differ, so times do not tell.
    """
    asks = filter(is_inbound, tape.named(e.PLAYHEAD_EXCHANGE_REQUEST))
    return min((order.get(fact.span_id.hex(), len(order)) for fact in asks), default=-1)


def _rank(tape: IndexedTape) -> int:
    """Sort key: processes without a parent first, then inbound requests, then their children."""
    start = next(tape.facts(), None)
    if start is None or start.attributes.get(a.PLAYHEAD_PROCESS_PARENT_INSTANCE):
        return 1 if isinstance(tape, SlicedTape) else 2
    return 1 if isinstance(tape, SlicedTape) else 0
