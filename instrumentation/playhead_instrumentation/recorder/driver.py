"""The driver connects source (who answers), gate (when) and sink (where facts go).

A boundary opens a `Call`, gives it both ways to an answer, and reports to it. It does not know whether
the process records or replays.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from opentelemetry import trace
from opentelemetry.trace import SpanContext

from playhead_core.facts import Ask, Content, Delivery, ExchangeId, Fact, Fidelity
from playhead_core.process.own_messages import Log
from playhead_core.tape.protocols import Sink
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.bodies import Bodies
from playhead_instrumentation.recorder.call import Call, RequestControl, ids_of
from playhead_instrumentation.recorder.decision import LIVE, Live, Played, Refused, Source
from playhead_instrumentation.recorder.gate import Gate
from playhead_instrumentation.recorder.options import NOTHING, Allowed
from playhead_instrumentation.recorder.played_exchange import deliveries_of
from playhead_instrumentation.recorder.reads import Reads
from playhead_instrumentation.recorder.states import States
from playhead_instrumentation.redaction import Redactor
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Edit
    from playhead_core.tape.indexed_tapes import IndexedTape

log = Log(__name__)


class Served(BaseException):
    """Raised when a replayed program starts to serve: the tape says which requests it gets."""


class Ends(Protocol):
    """Records waits that end because time passed. `determinism` implements it."""

    def close(self) -> None:
        """Stop recording such waits."""
        ...


class Printed(Protocol):
    """Output that the origin of a fork printed. `playback` implements it."""

    def new(self, stream: str, text: str, encoding: str) -> str:
        """The part of ``text`` that the origin did not print, which has to be written."""
        ...


class Files(Protocol):
    """Answers what the program asks of files. `host` implements and uses it."""

    @property
    def scratch(self) -> str:
        """The folder into which a replay redirects writes; empty if there is none."""
        ...

    def at_end(self) -> None:
        """The process ends: record the files that are still open."""
        ...


class Signals(Protocol):
    """Delivers the signals of a played tape. `playback` implements it."""

    def expects(self, number: int | None = None) -> bool:
        """Whether the tape has further signals, or further ones of this number."""
        ...

    def takes(self, number: int) -> Delivery | None:
        """The handler of a signal begins: its delivery on the tape; None: the tape has not sent it."""
        ...

    def came_again(self, number: int) -> bool:
        """Whether the handler is called for a repeated signal whose first one has been handled."""
        ...

    def began(self, at: Delivery | None) -> None:
        """The fact of the handler is on the tape. ``at``: its delivery on the played tape."""
        ...

    def ended(self) -> None:
        """A handler has ended."""
        ...

    def pause(self) -> None:
        """Wait until a handler has ended."""
        ...


class Driver:
    """Opens calls, and records effects and lanes."""

    def __init__(
        self,
        sink: Sink,
        redactor: Redactor,
        source: Source | None,
        gate: Gate,
        tape: IndexedTape | None = None,
        allowed: Allowed = NOTHING,
    ) -> None:
        """``tape``: the played tape, at a replay."""
        self.lane_ends: Mapping[int, Delivery] = {}
        """Deliveries of the ends of threads and jobs on the played tape, by lane."""
        self.sink = sink
        self.redactor = redactor
        self.tape = tape
        self.gate = gate
        self.content = redactor.content
        """Whether bodies are recorded; otherwise only their sizes are."""
        self.allowed = allowed
        """What a replay may do for real."""
        self.source = source
        """Decides how exchanges are answered; None: everything is done for real."""
        self.on_declared: Callable[[lanes.Lane], None] | None = None
        """Called with each lane that is declared on the tape; set at a replay."""
        self._bodies = Bodies(redactor.body)
        self._bodies_of = sink.instance
        self.reads = Reads(sink, self.declare, tape, content=redactor.content)
        self.signals: Signals | None = None
        """Delivers the signals of the played tape; None: they come from the world."""
        self.wakes: Ends | None = None
        """Names what ends by time; None where that is not recorded."""
        self.printed: Printed | None = None
        """Output of the origin of a fork, which is not printed again."""
        self.unreported: Callable[[int], list[dict[str, Any]]] = lambda span_id: []
        """Unrecorded starts of a span and of the spans around it, innermost first."""
        self.ending = False
        """Whether the process is ending: what its remaining threads do is no part of the run."""
        self.killed: Callable[[], None] | None = None
        """Kills this process if the recorded one was killed; called where it would end by itself."""
        self.on_refused: Callable[[], None] = lambda: None
        """Called at each request and effect that a replay refuses."""
        self.control: RequestControl | None = None
        """Says which asks wait before they go out, and what becomes of them; None: none waits."""
        self.branches = False
        """Whether the world answers behind the end of the tape (fork or resume)."""
        self.files: Files | None = None
        """Answers reads of files; None if files are not recorded."""
        self.states = States(sink, redactor, self.declare, tape)
        """Records the states that the program reports."""
        self.requests: list[Played] = []
        """Inbound requests of the played tape."""
        self.boot: list[Delivery] = []
        """Deliveries of that tape before the first inbound request."""
        self.failed_requests: list[str] = []
        """Inbound requests that raised, or were answered with status 500 or above."""
        self._requests = itertools.count(1)
        self._booted = False

    @property
    def closed(self) -> bool:
        """Whether a tape is asked first: nothing goes out before `open`, which needs the whole body."""
        return self.source is not None and self.source.closed

    @property
    def fenced(self) -> bool:
        """Whether the program is kept from the world where no boundary is involved."""
        return self.source is not None and self.source.fenced

    def open(
        self,
        kind: str,
        key: str,
        body: bytes | None,
        details: dict[str, Any],
        *,
        effect: Literal["read", "write"] = "read",
        span: SpanContext | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> Call:
        """Open an exchange. Its request fact is in the sink on return.

        ``body``: the request body; credentials are removed here. None: it comes in pieces, through
        `Call.sent`. ``details``: attributes of the request fact, without credentials. ``span``: of the
        exchange, or around it. ``about``: details that only the source reads and no tape has.
        """
        if self.redactor.places.any:
            key = self.redactor.places.text(key)
        attributes: dict[str, Any] = {a.PLAYHEAD_ASK_KEY: key, a.PLAYHEAD_ASK_EFFECT: effect, **details}
        kept, content = self.written(body or b"", attributes)
        lane = lanes.current()
        id = ExchangeId(lane.hash, kind, lane.next_ordinal(kind))
        if lane.declared_on != self.sink.instance:
            self.declare(lane)
        if self.redactor.late:
            attributes[a.PLAYHEAD_REDACTED_LATE] = self.redactor.take_late()
        ask = Ask(kind, key, content, effect, "out", {**details, **about} if about else details)
        decision = LIVE if self.source is None else self.source.decide(id, ask, kept)
        edits = decision.edits if isinstance(decision, Live) else ()
        replaced = edited(body or b"", edits) if edits else None
        if replaced is not None:
            attributes[a.PLAYHEAD_EDITED_DIGEST] = content.digest.hex()
            kept, content = self.written(replaced, attributes)
        if isinstance(decision, Played):
            recorded = decision.exchange
            if decision.fidelity is Fidelity.CHANGED or a.PLAYHEAD_EDITED_ANSWER in recorded.ask.details:
                attributes[a.PLAYHEAD_EDITED_ANSWER] = True
            own, sent = content.digest, recorded.ask.body.digest
            sent_other = a.PLAYHEAD_EDITED_DIGEST in recorded.ask.details and own != sent
            if sent_other and recorded.asked is None:
                # The recording is of a fork, which had sent this body instead of the program's.
                attributes[a.PLAYHEAD_EDITED_DIGEST] = content.digest.hex()
                kept = decision.read(recorded.ask.body)
                content = Content(recorded.ask.body.digest, len(kept), kept)
            attributes[a.PLAYHEAD_FIDELITY] = decision.fidelity
            if decision.pairs is not None:
                attributes[a.PLAYHEAD_VOLATILE_PAIRS] = decision.pairs
            attributes[a.PLAYHEAD_ORIGIN_INSTANCE] = decision.instance.hex()
            attributes[a.PLAYHEAD_ORIGIN_SEQ] = recorded.first_seq
            if content.digest == recorded.ask.body.digest and decision.elsewhere:
                content = Content(content.digest, content.size)
        elif isinstance(decision, Refused):
            self.on_refused()
            self.past_tape()
            attributes[a.PLAYHEAD_FIDELITY] = Fidelity.BLOCKED
            if decision.difference is not None:
                found = decision.difference
                attributes[a.PLAYHEAD_BLOCKED_DIFFERENCE] = [found.path, found.tape, found.now]
        elif self.source is not None and (self.source.closed or decision.instead_of is not None):
            attributes[a.PLAYHEAD_FIDELITY] = Fidelity.LIVE
            self._replace(decision, attributes)
        if span is not None and (begun := self.unreported(span.span_id)):
            attributes[a.PLAYHEAD_ASK_SPANS] = begun
        ids = ids_of(span)
        call = Call(self, id, decision, kept, ids)
        call.replaced = replaced
        call.time_ns = REAL.time_ns()
        call.last_seq = self.sink.append(
            Fact(
                call.time_ns,
                id.lane,
                e.PLAYHEAD_EXCHANGE_REQUEST,
                *ids,
                id,
                None,
                attributes,
                None if body is None else content,
            )
        )
        if self.control is not None:
            call.pending_release = self.control.pending_release(call, key, body)
        return call

    def _replace(self, live: Live, attributes: dict[str, Any]) -> None:
        """Drop the deliveries of the recording that this live exchange replaces."""
        recorded = live.instead_of
        if recorded is not None:
            attributes[a.PLAYHEAD_ORIGIN_INSTANCE] = live.instance.hex()
            attributes[a.PLAYHEAD_ORIGIN_SEQ] = recorded.first_seq
            self.gate.skip(deliveries_of(recorded))

    def next_request(self) -> tuple[str, Played | None]:
        """Name of the lane root of the next inbound request, and its recording if there is one."""
        expected = None if self.source is None else self.source.expects()
        return expected or (f"request.{next(self._requests)}", None)

    def serves(self) -> None:
        """The program is about to wait for requests. Raises `Served` if a tape has them."""
        if self.requests and not self._booted:
            raise Served

    def booted(self) -> None:
        """The program is ready to serve: drop the remaining deliveries of its boot."""
        self._booted = True
        self.gate.skip(self.boot)

    def past_tape(self) -> None:
        """The tape has no answer: kill the process if the recorded one was killed here."""
        if self.killed is not None and not self.gate.expects():
            self.killed()

    def effect(
        self,
        kind: str,
        target: str = "",
        body: Content | None = None,
        *,
        fidelity: Fidelity | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Record an effect on the world, with the current span. Returns the number of the fact.

        ``target``, ``body``, ``attributes``: without credentials. ``fidelity``: at a replay.
        """
        lane = lanes.current()
        if lane.declared_on != self.sink.instance:
            self.declare(lane)
        values: dict[str, Any] = {a.PLAYHEAD_EFFECT_KIND: kind, **(attributes or {})}
        if target:
            values[a.PLAYHEAD_EFFECT_TARGET] = self.redactor.places.text(target)
        if fidelity is not None:
            values[a.PLAYHEAD_FIDELITY] = fidelity
        if fidelity is Fidelity.BLOCKED:
            self.on_refused()
        ids = ids_of(span_around())
        return self.sink.append(
            Fact(REAL.time_ns(), lane.hash, e.PLAYHEAD_EFFECT, *ids, attributes=values, body=body)
        )

    def signalled(
        self, name: str, place: str, at: Delivery | None, fidelity: Fidelity | None = None
    ) -> None:
        """Record that the handler of a signal is about to run in the main thread.

        ``place``: the line that the signal interrupts; empty if the thread waits. ``fidelity``: at a
        replay.
        """
        lane = lanes.current()
        if lane in (lanes.UNRECORDED, lanes.GC):
            lane = lanes.MAIN
        if lane.declared_on != self.sink.instance:
            self.declare(lane)
        attributes: dict[str, Any] = {a.PLAYHEAD_INTERRUPT_SIGNAL: name}
        if place:
            attributes[a.PLAYHEAD_INTERRUPT_PLACE] = place
        if fidelity is not None:
            attributes[a.PLAYHEAD_FIDELITY] = fidelity
        ids = ids_of(span_around())
        self.sink.append(
            Fact(
                REAL.time_ns(), lane.hash, e.PLAYHEAD_INTERRUPT, *ids, delivery=at, attributes=attributes
            )
        )

    def prints(self, stream: str, text: str, encoding: str) -> str:
        """The part of ``text``, written to ``stream``, that has to be printed now."""
        return text if self.printed is None else self.printed.new(stream, text, encoding)

    def declare(self, lane: lanes.Lane) -> None:
        """Record the names of ``lane`` and of its parents, once per tape."""
        instance = self.sink.instance
        if lane.parent is not None and lane.parent.declared_on != instance:
            self.declare(lane.parent)
        lane.declared_on = instance
        if self.on_declared is not None:
            self.on_declared(lane)
        self._append_lane(lane)

    def _append_lane(self, lane: lanes.Lane, at: Delivery | None = None) -> None:
        self.sink.append(
            Fact(
                REAL.time_ns(),
                lane.hash,
                e.PLAYHEAD_LANE,
                delivery=at,
                attributes={
                    a.PLAYHEAD_LANE_NAME: lane.name,
                    a.PLAYHEAD_LANE_PARENT: f"{lane.parent.hash:016x}" if lane.parent else "",
                },
            )
        )

    def lane_ended(self, lane: lanes.Lane) -> None:
        """A thread or job with recorded exchanges ends: a delivery for whoever waits for it."""
        if lane.declared_on != self.sink.instance or lane in (lanes.UNRECORDED, lanes.GC):
            return  # it recorded nothing, or it is not the program's
        try:
            who = ExchangeId(lane.hash, "end", 0)
            at = self.gate.arrive(self.lane_ends.get(lane.hash), who).wait()
            lane.ended = at
            self._append_lane(lane, at)
        except Exception:
            log.debug("playhead could not record the end of a lane", exc_info=True)

    def moved(self, who: ExchangeId | None) -> None:
        """Record that something entered out of order because no other thread could proceed."""
        lane = lanes.MAIN.hash if who is None else who.lane
        self.sink.append(Fact(REAL.time_ns(), lane, e.PLAYHEAD_MOVED, exchange=who))

    def stands(self, threads: list[str]) -> None:
        """Record a standstill: no thread can proceed. ``threads``: what each one waits for."""
        attributes = {a.PLAYHEAD_STANDSTILL_THREADS: [self.redactor.text(one) for one in threads]}
        lane = lanes.MAIN.hash
        self.sink.append(Fact(REAL.time_ns(), lane, e.PLAYHEAD_STANDSTILL, attributes=attributes))

    def close(self) -> None:
        """Release all waiters: the process ends."""
        self.ending = True
        if self.wakes is not None:
            self.wakes.close()
        self.gate.close()

    def written(self, body: bytes, attributes: dict[str, Any]) -> tuple[bytes, Content]:
        """A body as it goes on tape, and its content. Redactions are noted in ``attributes``."""
        if not self.content:
            return body, Content(b"", len(body))
        if self._bodies_of != self.sink.instance:
            self._bodies.forget()
            self._bodies_of = self.sink.instance
        kept, content, count = self._bodies.written(body)
        if count:
            attributes[a.PLAYHEAD_REDACTED_COUNT] = attributes.get(a.PLAYHEAD_REDACTED_COUNT, 0) + count
            attributes[a.PLAYHEAD_REDACTED_DIGEST] = self.redactor.digest(body)
        return kept, content


def span_around() -> SpanContext | None:
    """The span that is current in this context; None where there is none."""
    span = trace.get_current_span().get_span_context()
    return span if span.is_valid else None


def edited(body: bytes, edits: Sequence[Edit]) -> bytes | None:
    """A JSON body with ``edits`` applied; everything else in it keeps its bytes. None: no edits."""
    if not edits:
        return None
    # Imported late: a recording does not need them.
    from playhead_core.rerun.edits import applied
    from playhead_core.rerun.rewriting import rewritten

    return rewritten(body.decode(), applied(json.loads(body), edits)).encode()
