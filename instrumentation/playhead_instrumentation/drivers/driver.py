"""The driver: source (who answers), gate (when) and sink (where facts go), wired together.

A boundary opens a `Call`, does what the call's verdict says, and reports to the call. It does not know
whether the process records or replays. Every method of a call appends its fact before it returns: the
fact is on the tape before the program sees its consequence.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import blake3
from opentelemetry import trace

from playhead_instrumentation import lanes
from playhead_instrumentation.drivers.allowed import NOTHING, Allowed
from playhead_instrumentation.drivers.bodies import Bodies
from playhead_instrumentation.drivers.files import Files
from playhead_instrumentation.drivers.gate import Gate, Turn
from playhead_instrumentation.drivers.printed import Printed
from playhead_instrumentation.drivers.reads import Reads
from playhead_instrumentation.drivers.states import States
from playhead_instrumentation.drivers.verdict import Live, Played, Refused, Source, Verdict
from playhead_instrumentation.drivers.waiting import Waiting
from playhead_instrumentation.drivers.wakes import Wakes
from playhead_instrumentation.drivers.wakes import keep as keep_wakes
from playhead_instrumentation.redaction import Redactor
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.edits import applied
from playhead_semconv.errors import ExchangeUnmatched, PlayheadError
from playhead_semconv.facts import (
    Ask,
    Content,
    Delivery,
    End,
    EndedHow,
    ErrorRecord,
    ExchangeId,
    Fact,
    Fidelity,
)
from playhead_semconv.plans import Edit
from playhead_semconv.seams import Sink
from playhead_semconv.tapes import IndexedTape

log = logging.getLogger(__name__)


class Scrub(Protocol):
    """Takes secrets out of an answer as it comes; lengths stay."""

    count: int
    """Values that were scrubbed so far."""

    def chunk(self, data: bytes) -> bytes:
        """``data`` as it may go on tape."""
        ...


class Call:
    """One exchange that is going on. Sans-I/O: the boundary moves the bytes and reports here."""

    __slots__ = (
        "_answer",
        "_arrived",
        "_driver",
        "_instance",
        "_open",
        "_sent",
        "_span_id",
        "_trace_id",
        "body",
        "ended",
        "id",
        "last_seq",
        "replaced",
        "scrub",
        "time_ns",
        "verdict",
    )

    def __init__(
        self,
        driver: Driver,
        id: ExchangeId,
        verdict: Verdict,
        body: bytes,
        trace_id: bytes,
        span_id: bytes,
    ) -> None:
        self.id = id
        self.verdict = verdict
        self.body = body
        """The request body as it went on tape."""
        self.replaced: bytes | None = None
        """What is to be sent in the place of the program's body."""
        self.scrub: Scrub | None = None
        """Set by the boundary, for what comes after the head."""
        self.last_seq = -1
        self.time_ns = 0
        """Time of the last fact."""
        self.ended: End | None = None
        """How it ended; None while it goes on."""
        self._driver = driver
        self._instance = driver.sink.instance
        self._arrived = 0
        self._sent = 0
        self._answer: blake3.blake3 | None = None
        """Digest of the answer so far; None before its first chunk."""
        self._trace_id = trace_id
        self._span_id = span_id
        # list.pop is atomic: whoever gets the baton writes the end, in a finalizer too.
        self._open = [None]

    @property
    def inherited(self) -> bool:
        """Whether the process has forked since: what goes on is the parent's exchange, not ours."""
        return self._driver.sink.instance != self._instance

    def arrive(self, index: int | None = None) -> Turn:
        """The turn of the next thing that enters the program: head, part or end.

        ``index``: which one on the tape that is played, as `Played.due` counts; by default the next.
        """
        verdict = self.verdict
        if not isinstance(verdict, Played):
            return self._driver.gate.arrive(None, self.id)
        gate = self._driver.gate
        due = verdict.due(self._arrived if index is None else index)
        if due is None and verdict.reopen is None:
            return gate.never(self.id)
        return gate.arrive(due, self.id)

    async def left(self) -> tuple[Delivery | None, asyncio.CancelledError | None]:
        """The program has cancelled what it awaits, or reads no further, and that has cleaned up.

        How long that takes is up to the world: the turn in which the program goes on. Cancelling does
        not end the wait for it; a cancellation that came meanwhile is given back. No delivery where a
        finalizer asks.
        """
        verdict, gate = self.verdict, self._driver.gate
        due = verdict.left if isinstance(verdict, Played) else None
        if lanes.current() is lanes.GC or (due is None and isinstance(verdict, Played)):
            return None, None
        turn = gate.arrive(due, self.id)
        if not isinstance(turn, Waiting):
            return await turn, None
        turn.stays = True
        return await turn, turn.cancelled

    def never(self) -> Turn:
        """The turn of what the tape does not hold."""
        return self._driver.gate.never(self.id)

    def skip(self, indices: Iterable[int]) -> None:
        """These, as `Played.due` counts, are not waited for any more."""
        if isinstance(self.verdict, Played):
            dues = [self.verdict.due(index) for index in indices]
            self._driver.gate.skip([due for due in dues if due is not None])

    def head(self, values: dict[str, Any], at: Delivery | None) -> None:
        """The head of the answer: status, headers, …, credentials already removed."""
        self._arrived = 1
        self._append(e.PLAYHEAD_EXCHANGE_RESPONSE, values, None, at)

    def part(self, data: bytes, at: Delivery | None, more: Mapping[str, Any] | None = None) -> bytes:
        """A piece of the answer; what of it went on tape. ``more``: attributes of the fact."""
        attributes: dict[str, Any] = dict(more or {})
        kept = data
        if self.scrub is not None:
            before = self.scrub.count
            kept = self.scrub.chunk(data)
            if self.scrub.count != before:
                attributes[a.PLAYHEAD_REDACTED_COUNT] = self.scrub.count - before
        self._arrived += 1
        if self._driver.content:
            if self._answer is None:
                self._answer = blake3.blake3()
            self._answer.update(kept)
        verdict = self.verdict
        played = isinstance(verdict, Played) and verdict.elsewhere and not verdict.past(self._arrived)
        elsewhere = played or not self._driver.content
        body = Content(b"", len(kept)) if elsewhere else Content(b"", len(kept), kept)
        self._append(e.PLAYHEAD_EXCHANGE_DATA, attributes, body, at)
        return kept

    def sent(self, data: bytes, more: Mapping[str, Any] | None = None) -> bytes:
        """A piece of a request body that is made while it is sent; what of it went on tape.

        ``more``: attributes of the fact.
        """
        data, _ = self._driver.redactor.body(data)
        body = Content(b"", len(data), data if self._driver.content else None)
        attributes = {a.PLAYHEAD_EXCHANGE_DIRECTION: "out", **(more or {})}
        self._append(e.PLAYHEAD_EXCHANGE_DATA, attributes, body)
        return data

    def message(self, data: bytes, attributes: Mapping[str, Any] | None = None) -> None:
        """A message is about to go out. `ExchangeUnmatched` where the tape holds another."""
        kept, count = self._driver.redactor.body(data)
        values: dict[str, Any] = {a.PLAYHEAD_EXCHANGE_DIRECTION: "out", **(attributes or {})}
        if count:
            values[a.PLAYHEAD_REDACTED_COUNT] = count
        number, self._sent = self._sent, self._sent + 1
        verdict = self.verdict
        body = Content(b"", len(kept), kept if self._driver.content else None)
        self._append(e.PLAYHEAD_EXCHANGE_DATA, values, body)
        found = verdict.difference(number, kept, values) if isinstance(verdict, Played) else None
        if found is not None:
            error = ExchangeUnmatched(
                f"message {number + 1} is not the one on the tape",
                cause=f"first difference at {found.path}: tape {found.tape}, now {found.now}",
            )
            self._refuse(error)
            raise error
        if isinstance(verdict, Refused):
            raise verdict.error

    def missing(self) -> int:
        """How many messages the program has yet to send before the next thing may arrive."""
        verdict = self.verdict
        return verdict.after(self._arrived) - self._sent if isinstance(verdict, Played) else 0

    def exhausted(self, error: PlayheadError) -> None:
        """The tape does not say how it goes on: nothing answers any more."""
        self._refuse(error)

    def _refuse(self, error: PlayheadError) -> None:
        if isinstance(self.verdict, Played):
            self._driver.gate.skip(self.verdict.deliveries(self._arrived))
        self.verdict = Refused(error)

    def end(
        self,
        how: EndedHow,
        at: Delivery | None = None,
        error: ErrorRecord | None = None,
        *,
        values: Mapping[str, Any] | None = None,
        body: Content | None = None,
        goes_on: bool = False,
    ) -> bool:
        """It is over; whether this was the end. Idempotent, without a lock, safe in a finalizer.

        ``values``, ``body``: of the fact, credentials already removed. ``goes_on``: pieces may follow.
        """
        try:
            self._open.pop()
        except IndexError:
            return False
        attributes: dict[str, Any] = {a.PLAYHEAD_END_HOW: how, **(values or {})}
        if self._answer is not None and not goes_on:
            attributes[a.PLAYHEAD_END_DIGEST] = self._answer.hexdigest()
        if error is not None:
            attributes |= error_attributes(error)
        if isinstance(self.verdict, Refused):
            attributes[a.PLAYHEAD_FIDELITY] = Fidelity.BLOCKED
        self._append(e.PLAYHEAD_EXCHANGE_END, attributes, body, at)
        if isinstance(self.verdict, Played) and not goes_on:
            self._driver.gate.skip(self.verdict.deliveries(self._arrived))
        elif isinstance(self.verdict, Live):
            self._driver.went(self.id)
        self.ended = End(how, at, error, self.time_ns)
        return True

    def _append(
        self, name: str, attributes: dict[str, Any], body: Content | None, at: Delivery | None = None
    ) -> None:
        self.time_ns = now_ns = time.time_ns()
        if self.inherited:
            return
        fact = Fact(
            now_ns,
            self.id.lane,
            name,
            self._trace_id,
            self._span_id,
            self.id,
            at,
            attributes,
            body,
        )
        self.last_seq = self._driver.sink.append(fact)


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
        lane_ends: Mapping[int, Delivery] | None = None,
        tape: IndexedTape | None = None,
        wakes: Mapping[ExchangeId, Delivery] | None = None,
        allowed: Allowed = NOTHING,
        printed: Printed | None = None,
    ) -> None:
        """``lane_ends``: when the threads and jobs ended on the ``tape`` that is played; ``wakes``:

        when what ended by time did. ``printed``: what is not printed again; then the world answers
        what the tape does not.
        """
        self._lane_ends = lane_ends or {}
        self.sink = sink
        self.redactor = redactor
        self.gate = gate
        self.content = redactor.content
        """Whether bodies are recorded, or only their sizes."""
        self.allowed = allowed
        """What a replay may do for real."""
        self._source = source
        self._bodies = Bodies(redactor.body)
        self._bodies_of = sink.instance
        self.reads = Reads(sink, self.declare, tape)
        self.wakes = Wakes(sink, gate, self.reads, self.declare, wakes, goes_on=printed is not None)
        self._printed = printed
        self.ending = False
        """Whether the process ends: what threads do that end with it is no part of the run."""
        self.killed: Callable[[], None] | None = None
        """Ends this process, where it was killed when recorded; called where it would end by itself."""
        self.files: Files
        """Who answers what the program asks of files; set by `open_driver`."""
        self.states = States(sink, redactor, self.declare, tape)
        """Puts the states that the program says on the tape."""
        self.requests: list[Played] = []
        """Those that came to the program on the tape that is played."""
        self.boot: list[Delivery] = []
        """What was delivered on that tape before the first of them."""
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
        verdict = self._source.decide(id, Ask(kind, key, content, effect, "out", details), kept)
        replaced = edited(body or b"", verdict.edits) if isinstance(verdict, Live) else None
        if replaced is not None:
            attributes[a.PLAYHEAD_EDITED_DIGEST] = content.digest.hex()
            kept, content = self._written(replaced, attributes)
        if isinstance(verdict, Played):
            recorded = verdict.exchange
            if a.PLAYHEAD_EDITED_DIGEST in recorded.ask.details:
                # The recording is of a fork, which had sent this in its place.
                attributes[a.PLAYHEAD_EDITED_DIGEST] = content.digest.hex()
                kept = verdict.read(recorded.ask.body)
                content = Content(recorded.ask.body.digest, len(kept), kept)
            attributes[a.PLAYHEAD_FIDELITY] = verdict.fidelity
            attributes[a.PLAYHEAD_ORIGIN_INSTANCE] = verdict.instance.hex()
            attributes[a.PLAYHEAD_ORIGIN_SEQ] = recorded.first_seq
            if content.digest == recorded.ask.body.digest and verdict.elsewhere:
                content = Content(content.digest, content.size)
        elif isinstance(verdict, Refused):
            self.past_tape()
            attributes[a.PLAYHEAD_FIDELITY] = Fidelity.BLOCKED
        elif self.closed or verdict.instead_of is not None:
            attributes[a.PLAYHEAD_FIDELITY] = Fidelity.LIVE
            self._replace(verdict, attributes)
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
        return text if self._printed is None else self._printed.new(stream, text, encoding)

    def declare(self, lane: lanes.Lane) -> None:
        """Put the name of ``lane`` and of those above it on the tape, once."""
        instance = self.sink.instance
        if lane.parent is not None and lane.parent.declared_on != instance:
            self.declare(lane.parent)
        lane.declared_on = instance
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
        if lane.declared_on != self.sink.instance:
            return
        try:
            who = ExchangeId(lane.hash, "end", 0)
            at = self.gate.arrive(self._lane_ends.get(lane.hash), who).wait()
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
        keep_wakes(None)
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


def error_attributes(error: ErrorRecord) -> dict[str, Any]:
    """The attributes in which a fact carries an error."""
    attributes: dict[str, Any] = {
        a.PLAYHEAD_ERROR_MODULE: error.module,
        a.PLAYHEAD_ERROR_QUALNAME: error.qualname,
        a.PLAYHEAD_ERROR_MESSAGE: error.message,
    }
    if error.args:
        attributes[a.PLAYHEAD_ERROR_ARGS] = error.args
    if error.phase:
        attributes[a.PLAYHEAD_ERROR_PHASE] = error.phase
    return attributes
