"""The driver: source (who answers), gate (when) and sink (where facts go), wired together.

A boundary opens a `Call`, does what the call's verdict says, and reports to the call. It does not know
whether the process records or replays.
"""

from __future__ import annotations

import itertools
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from opentelemetry import trace

from playhead_instrumentation.driver.allowed import NOTHING, Allowed
from playhead_instrumentation.driver.bodies import Bodies
from playhead_instrumentation.driver.call import Call
from playhead_instrumentation.driver.gate import Gate
from playhead_instrumentation.driver.reads import Reads
from playhead_instrumentation.driver.states import States
from playhead_instrumentation.driver.verdict import Live, Played, Refused, Source
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.runtime import lanes
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.facts import (
    Ask,
    Content,
    Delivery,
    ExchangeId,
    Fact,
    Fidelity,
)
from playhead_semconv.rerun.edits import applied
from playhead_semconv.rerun.plans import Edit
from playhead_semconv.tape.protocols import Sink

if TYPE_CHECKING:
    from playhead_instrumentation.determinism.scheduler.timer_ends import Wakes
    from playhead_instrumentation.host.files.recorded import Files
    from playhead_instrumentation.playback.printed_before import Printed
    from playhead_semconv.tape.indexed_tapes import IndexedTape

log = logging.getLogger(__name__)


class Served(BaseException):
    """The program has come to where it serves; what it is to serve is on the tape."""


class Driver:
    """Opens calls."""

    def __init__(
        self,
        sink: Sink,
        redactor: Redactor,
        source: Source,
        gate: Gate,
        tape: IndexedTape | None = None,
        allowed: Allowed = NOTHING,
    ) -> None:
        """``tape``: that is played."""
        self.lane_ends: Mapping[int, Delivery] = {}
        """When the threads and jobs ended on the tape that is played."""
        self.sink = sink
        self.redactor = redactor
        self.gate = gate
        self.content = redactor.content
        """Whether bodies are recorded, or only their sizes."""
        self.allowed = allowed
        """What a replay may do for real."""
        self._source = source
        self.on_declared: Callable[[lanes.Lane], None] | None = None
        """Told of each lane that is put on the tape; set at a replay."""
        self._bodies = Bodies(redactor.body)
        self._bodies_of = sink.instance
        self.reads = Reads(sink, self.declare, tape, content=redactor.content)
        self.wakes: Wakes | None = None
        """Names what ends by time; None where that is not recorded."""
        self.printed: Printed | None = None
        """What the origin of a fork had printed, which is not printed again."""
        self.untold: Callable[[int], list[dict[str, Any]]] = lambda span_id: []
        """The starts of a span and of those around it that are not on the tape yet, innermost first."""
        self.ending = False
        """Whether the process ends: what threads do that end with it is no part of the run."""
        self.killed: Callable[[], None] | None = None
        """Ends this process, where it was killed when recorded; called where it would end by itself."""
        self.branches = False
        """Whether the world answers where the tape ends: a fork, or a resume."""
        self.files: Files | None = None
        """Who answers what the program asks of files; None where they are not recorded."""
        self.states = States(sink, redactor, self.declare, tape)
        """Puts the states that the program says on the tape."""
        self.requests: list[Played] = []
        """Those that came to the program on the tape that is played."""
        self.boot: list[Delivery] = []
        """What was delivered on that tape before the first of them."""
        self.failed_requests: list[str] = []
        """Requests that raised, or that were answered with a status of 500 and above."""
        self._requests = itertools.count(1)
        self._booted = False

    @property
    def closed(self) -> bool:
        """Whether a request body must be whole before it is asked for."""
        return self._source.closed

    @property
    def fenced(self) -> bool:
        """Whether what no boundary asks for is kept from the world."""
        return self._source.fenced

    def open(
        self,
        kind: str,
        key: str,
        body: bytes | None,
        details: dict[str, Any],
        *,
        effect: Literal["read", "write"] = "read",
        trace_id: bytes = b"",
        span_id: bytes = b"",
    ) -> Call:
        """Ask. The ask is in the sink on return.

        ``body``: the request body as it is, credentials are taken out here; None: it comes in pieces,
        through `Call.sent`. ``details``: attributes of the request fact, credentials already removed.
        """
        if self.redactor.places:
            key = self.redactor.places.text(key)
        lane = lanes.current()
        id = ExchangeId(lane.hash, kind, lane.next_ordinal(kind))
        if lane.declared_on != self.sink.instance:
            self.declare(lane)
        attributes: dict[str, Any] = {a.PLAYHEAD_ASK_KEY: key, a.PLAYHEAD_ASK_EFFECT: effect, **details}
        kept, content = self._written(body or b"", attributes)
        late = self.redactor.late()
        if late:
            attributes[a.PLAYHEAD_REDACTED_LATE] = late
        verdict = self._source.decide(id, Ask(kind, key, content, effect, "out", details), kept)
        replaced = edited(body or b"", verdict.edits) if isinstance(verdict, Live) else None
        if replaced is not None:
            attributes[a.PLAYHEAD_EDITED_DIGEST] = content.digest.hex()
            kept, content = self._written(replaced, attributes)
        if isinstance(verdict, Played):
            recorded = verdict.exchange
            if verdict.fidelity is Fidelity.CHANGED or a.PLAYHEAD_EDITED_ANSWER in recorded.ask.details:
                attributes[a.PLAYHEAD_EDITED_ANSWER] = True
            own, sent = content.digest, recorded.ask.body.digest
            if a.PLAYHEAD_EDITED_DIGEST in recorded.ask.details and own != sent:
                # The recording is of a fork, which had sent this in its place.
                attributes[a.PLAYHEAD_EDITED_DIGEST] = content.digest.hex()
                kept = verdict.read(recorded.ask.body)
                content = Content(recorded.ask.body.digest, len(kept), kept)
            attributes[a.PLAYHEAD_FIDELITY] = verdict.fidelity
            if verdict.pairs is not None:
                attributes[a.PLAYHEAD_VOLATILE_PAIRS] = verdict.pairs
            attributes[a.PLAYHEAD_ORIGIN_INSTANCE] = verdict.instance.hex()
            attributes[a.PLAYHEAD_ORIGIN_SEQ] = recorded.first_seq
            if content.digest == recorded.ask.body.digest and verdict.elsewhere:
                content = Content(content.digest, content.size)
        elif isinstance(verdict, Refused):
            self.past_tape()
            attributes[a.PLAYHEAD_FIDELITY] = Fidelity.BLOCKED
            if verdict.difference is not None:
                found = verdict.difference
                attributes[a.PLAYHEAD_BLOCKED_DIFFERENCE] = [found.path, found.tape, found.now]
        elif self.closed or verdict.instead_of is not None:
            attributes[a.PLAYHEAD_FIDELITY] = Fidelity.LIVE
            self._replace(verdict, attributes)
        begun = self.untold(int.from_bytes(span_id)) if span_id else None
        if begun:
            attributes[a.PLAYHEAD_ASK_SPANS] = begun
        call = Call(self, id, verdict, kept, trace_id, span_id)
        call.replaced = replaced
        call.time_ns = time.time_ns()
        call.last_seq = self.sink.append(
            Fact(
                call.time_ns,
                id.lane,
                e.PLAYHEAD_EXCHANGE_REQUEST,
                trace_id,
                span_id,
                id,
                None,
                attributes,
                None if body is None else content,
            )
        )
        return call

    def _replace(self, live: Live, attributes: dict[str, Any]) -> None:
        """Nobody will come for the deliveries of what it stands in for: it is done for real."""
        recorded = live.instead_of
        if recorded is not None:
            attributes[a.PLAYHEAD_ORIGIN_INSTANCE] = live.instance.hex()
            attributes[a.PLAYHEAD_ORIGIN_SEQ] = recorded.first_seq
            self.gate.skip(Played(recorded, Fidelity.LIVE, b"", lambda _: b"").deliveries())

    def next_request(self) -> tuple[str, Played | None]:
        """Name of the lane root of a request that comes now, and what a tape says of it."""
        return self._source.expects() or (f"request.{next(self._requests)}", None)

    def serves(self) -> None:
        """The program is about to wait for requests. `Served` where a tape says which came."""
        if self.requests and not self._booted:
            raise Served

    def booted(self) -> None:
        """The program is ready to be asked: what is left of the boot on the tape is not waited for."""
        self._booted = True
        self.gate.skip(self.boot)

    def past_tape(self) -> None:
        """The tape does not answer: a process that was killed when recorded has come to its end."""
        if self.killed is not None and not self.gate.expects():
            self.killed()

    def went(self, id: ExchangeId) -> None:
        """What was done for real has ended."""
        self._source.ended(id)

    def effect(
        self,
        kind: str,
        target: str = "",
        body: Content | None = None,
        *,
        fidelity: Fidelity | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> int:
        """Something done to the world, on the span that caused it. Number of the fact.

        ``target``, ``body``, ``attributes``: credentials already removed. ``fidelity``: of a replay.
        """
        lane = lanes.current()
        if lane.declared_on != self.sink.instance:
            self.declare(lane)
        values: dict[str, Any] = {a.PLAYHEAD_EFFECT_KIND: kind, **(attributes or {})}
        if target:
            values[a.PLAYHEAD_EFFECT_TARGET] = self.redactor.places.text(target)
        if fidelity is not None:
            values[a.PLAYHEAD_FIDELITY] = fidelity
        span = trace.get_current_span().get_span_context()
        return self.sink.append(
            Fact(
                time.time_ns(),
                lane.hash,
                e.PLAYHEAD_EFFECT,
                span.trace_id.to_bytes(16) if span.is_valid else b"",
                span.span_id.to_bytes(8) if span.is_valid else b"",
                attributes=values,
                body=body,
            )
        )

    def prints(self, stream: str, text: str, encoding: str) -> str:
        """What of ``text``, which the program writes to ``stream``, is to be put out now."""
        return text if self.printed is None else self.printed.new(stream, text, encoding)

    def declare(self, lane: lanes.Lane) -> None:
        """Put the name of ``lane`` and of those above it on the tape, once."""
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
                time.time_ns(),
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
        """A thread or job that has asked for something ends: whoever waits for it gets a delivery."""
        if lane.declared_on != self.sink.instance or lane in (lanes.SHADOW, lanes.GC):
            return  # nothing was asked for in it, or it is none of the program's
        try:
            who = ExchangeId(lane.hash, "end", 0)
            at = self.gate.arrive(self.lane_ends.get(lane.hash), who).wait()
            lane.ended = at
            self._append_lane(lane, at)
        except Exception:
            log.debug("playhead could not record the end of a lane", exc_info=True)

    def moved(self, who: ExchangeId | None) -> None:
        """Something enters out of order, because nobody else could go on."""
        lane = lanes.MAIN.hash if who is None else who.lane
        self.sink.append(Fact(time.time_ns(), lane, e.PLAYHEAD_MOVED, exchange=who))

    def stands(self, threads: list[str]) -> None:
        """Nobody goes on any more; ``threads``: what each waits for."""
        attributes = {a.PLAYHEAD_STANDSTILL_THREADS: [self.redactor.text(one) for one in threads]}
        lane = lanes.MAIN.hash
        self.sink.append(Fact(time.time_ns(), lane, e.PLAYHEAD_STANDSTILL, attributes=attributes))

    def close(self) -> None:
        """Nobody waits for a turn any more."""
        self.ending = True
        if self.wakes is not None:
            self.wakes.close()
        self.gate.close()

    def _written(self, body: bytes, attributes: dict[str, Any]) -> tuple[bytes, Content]:
        """A body as it goes on tape, and its content; what was redacted is said in ``attributes``."""
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


def edited(body: bytes, edits: Sequence[Edit]) -> bytes | None:
    """A JSON body with ``edits`` made, as an SDK writes it; None where there are none."""
    if not edits:
        return None
    document = applied(json.loads(body), edits)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
