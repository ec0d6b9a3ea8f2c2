"""A call: one open exchange, as seen by the boundary that moves its bytes.

Every method appends its fact before it returns, so the fact is on the tape before the program sees its
consequence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, TypeVarTuple

import blake3
from opentelemetry.trace import SpanContext

from playhead_core.errors import ExchangeUnmatched, PlayheadError
from playhead_core.facts import Content, Delivery, End, EndedHow, ErrorRecord, ExchangeId, Fact, Fidelity
from playhead_core.process.own_messages import Log
from playhead_core.tape.protocols import Sink
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.decision import Decision, Live, Origin, Played, Refused
from playhead_instrumentation.recorder.exceptions import is_rejection
from playhead_instrumentation.recorder.gate import RELEASED, Gate, Permit, Release
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.redaction.pieces import Body, Messages
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Unknown

Ts = TypeVarTuple("Ts")
T = TypeVar("T")

SpanIds: TypeAlias = tuple[bytes, bytes]
"""Trace and span of a fact; empty where there is none."""

NO_SPAN: Final[SpanIds] = b"", b""

NO_MORE: Final[Mapping[str, Any]] = {}
"""No further attributes of a fact."""

HASHED_BYTES: Final = 1 << 14
"""Chunks of an answer are hashed together up to about this size."""

log = Log(__name__)


class Scrub(Protocol):
    """Removes secrets from an answer chunk by chunk; lengths stay the same."""

    count: int
    """Number of values removed so far."""
    unpacked: str
    """The content coding that was undone for the tape; empty if none was."""

    def chunk(self, data: bytes) -> bytes:
        """``data`` as it may go on tape."""
        ...


class RequestControl(Protocol):
    """Says which asks wait before they go out: an operator, a rule, or a tape that tells of them.

    Methods may be called from any thread; only the waits for what they return take time.
    """

    def pending_release(self, call: Call, key: str, body: bytes | None) -> Release | None:
        """What the ask of a call waits for; None: nothing. Its request fact is on the tape.

        ``key``, ``body``: what is asked; the body as it goes out, None if it comes in pieces.
        """
        ...

    def arrival(self, call: Call, permit: Permit) -> Permit:
        """``permit``, or one that also waits as long as the program is paused."""
        ...

    def answered(self, call: Call, values: dict[str, Any]) -> None:
        """The head of an answer is on the tape. Safe in a finalizer."""
        ...

    def ended(self, call: Call) -> None:
        """The end of an exchange is on the tape. Safe in a finalizer."""
        ...


class Recorder(Protocol):
    """What a call needs of the driver that opened it."""

    branches: bool
    """Whether the world answers behind the end of the tape (fork or resume)."""
    content: bool
    """Whether bodies are recorded, or only their sizes."""
    control: RequestControl | None
    """Says which asks wait before they go out; None: none does."""
    gate: Gate
    """Says when what comes may enter the program."""
    redactor: Redactor
    """Takes credentials out of what goes on the tape."""
    sink: Sink
    """Where the facts go."""


class Call:
    """One open exchange. Sans-I/O: the boundary moves the bytes and reports here."""

    __slots__ = (
        "_answer",
        "_arrived",
        "_driver",
        "_instance",
        "_messages",
        "_open",
        "_pieces",
        "_sent",
        "_span_id",
        "_trace_id",
        "_unhashed",
        "_unhashed_bytes",
        "answer_digest",
        "body",
        "decision",
        "ended",
        "fidelity",
        "id",
        "last_seq",
        "pending_release",
        "replaced",
        "scrub",
        "time_ns",
    )

    def __init__(
        self,
        driver: Recorder,
        id: ExchangeId,
        decision: Decision,
        body: bytes,
        span: SpanIds,
    ) -> None:
        self.id = id
        self.decision = decision
        self.body = body
        """The request body as it went on tape."""
        self.fidelity = decision.fidelity if driver.branches and isinstance(decision, Played) else ""
        """For the span of an exchange that the tape of a fork's origin answers; else empty."""
        self.replaced: bytes | None = None
        """Body to send instead of the program's own (an edit of a fork); None: the program's own."""
        self.pending_release: Release | None = None
        """What the ask waits for before it goes out; None: nothing."""
        self.scrub: Scrub | None = None
        """Set by the boundary with the head; applied to all later parts."""
        self.last_seq = -1
        self.time_ns = 0
        """Time of the last fact."""
        self.ended: End | None = None
        """How the exchange ended; None while it is open."""
        self.answer_digest = ""
        """Of the whole answer once it has ended, or its error; empty if it is not known."""
        self._driver = driver
        self._instance = driver.sink.instance
        self._arrived = 0
        self._sent = 0
        self._pieces: Body | None = None
        """Its request body, if that is sent in pieces."""
        self._messages: Messages | None = None
        """What it has sent, if that is messages or a stream."""
        self._answer: blake3.blake3 | None = None
        """Digest of the answer up to `_unhashed`; None before it was begun."""
        self._unhashed: list[bytes] = []
        self._unhashed_bytes = 0
        self._trace_id, self._span_id = span
        # list.pop is atomic, also in a finalizer: the caller that pops the item writes the end.
        self._open = [None]

    @property
    def ids(self) -> SpanIds:
        """Trace and span of the exchange."""
        return self._trace_id, self._span_id

    def release(self) -> Release:
        """The permit of the ask, before it goes out.

        Behind it `decision`, `replaced` and `body` are final: an operator may have changed them.
        """
        return self.pending_release or RELEASED

    def answer(
        self, live: Callable[[*Ts], T], again: Callable[[PlayedExchange, *Ts], T], *given: *Ts
    ) -> T:
        """Answer the exchange in the way that the source has decided.

        ``live(*given)`` asks the world. ``again(recorded, *given)`` makes the same from a
        `PlayedExchange`. Only one of them is called; its result is returned, a coroutine as well, and
        what it raises is raised. `PlayheadError` where nothing answers, or where the tape has ended.
        """
        decision = self.decision
        if isinstance(decision, Live):
            return live(*given)
        if isinstance(decision, Played):
            return again(decision, *given)
        raise decision.error

    def check(self) -> None:
        """Raise the `PlayheadError` of an exchange that nothing answers (any more)."""
        if isinstance(self.decision, Refused):
            raise self.decision.error

    @property
    def origin(self) -> Origin | None:
        """The recording that answers, or that this exchange replaces; None: there is none."""
        return self.decision.origin

    @property
    def rejection(self) -> PlayedExchange | None:
        """What the program gets where an operator or a rule has rejected the ask; None: nobody has."""
        decision = self.decision
        if not isinstance(decision, Played):
            return None
        end = decision.exchange.end
        return decision if end is not None and is_rejection(end.error) else None

    @property
    def inherited(self) -> bool:
        """Whether the process has forked since the call was opened: the exchange is the parent's."""
        return self._driver.sink.instance != self._instance

    @property
    def unknown(self) -> Unknown:
        """What the user has decided, where the recording of this call has no end."""
        return self.decision.unknown if isinstance(self.decision, Live) else "rule"

    def arrive(self, index: int | None = None) -> Permit:
        """The permit of the next item that enters the program: head, part or end.

        ``index``: its index on the played tape, as `Played.due` counts; by default the next one.
        """
        decision = self.decision
        if not isinstance(decision, Played):
            permit, control = self._driver.gate.arrive(None, self.id), self._driver.control
            return permit if control is None else control.arrival(self, permit)
        gate = self._driver.gate
        due = decision.due(self._arrived if index is None else index)
        if due is None and decision.reopen is None and not decision.made:
            return gate.never(self.id)
        return gate.arrive(due, self.id)

    async def left(self) -> tuple[Delivery | None, asyncio.CancelledError | None]:
        """Wait for the permit with which the program continues after it cancelled or stopped reading.

        The clean-up of the transport is over by then. Its duration depends on the world, so the end of
        it is an arrival of its own. Cancellation does not end this wait; a cancellation that comes
        meanwhile is returned next to the delivery. In a finalizer there is no delivery.
        """
        permit: Any = self._left()
        if permit is None:
            return None, None
        if not hasattr(permit, "stays"):  # this gate holds nothing back
            return await permit, None
        permit.stays = True
        return await permit, permit.cancelled

    def left_by_greenlet(self) -> Delivery | None:
        """The same for a greenlet: others run while it cleans up."""
        permit = self._left() if lanes.among_greenlets() else None
        return None if permit is None else permit.wait()

    def _left(self) -> Permit | None:
        decision, gate = self.decision, self._driver.gate
        due = decision.left if isinstance(decision, Played) else None
        if lanes.current() is lanes.GC or (due is None and isinstance(decision, Played)):
            return None
        return gate.arrive(due, self.id)

    def headless(self) -> None:
        """The answer has no head: its parts are counted from the beginning."""
        self._arrived = 1

    def never(self) -> Permit:
        """A permit for something that is not on the tape: it never comes."""
        return self._driver.gate.never(self.id)

    def skip(self, indices: Iterable[int]) -> None:
        """Drop the deliveries with these indices (as `Played.due` counts): they will not arrive."""
        if isinstance(self.decision, Played):
            dues = [self.decision.due(index) for index in indices]
            self._driver.gate.skip([due for due in dues if due is not None])

    def head(self, values: dict[str, Any], at: Delivery | None) -> None:
        """The head of the answer (status, headers, …), without credentials."""
        self._arrived = 1
        self._append(e.PLAYHEAD_EXCHANGE_RESPONSE, values, None, at)
        if self._driver.control is not None:
            self._driver.control.answered(self, values)

    def part(
        self,
        data: bytes,
        at: Delivery | None,
        more: Mapping[str, Any] | None = None,
        *,
        whole: bool = True,
    ) -> bytes:
        """Record a part of the answer; returns what went on tape. ``more``: attributes of the fact.

        ``whole``: False keeps only its size.
        """
        attributes: dict[str, Any] = dict(more) if more else {}
        scrub, content, kept = self.scrub, self._driver.content, data
        if scrub is not None:
            before = scrub.count
            kept = scrub.chunk(data)
            if scrub.count != before:
                attributes[a.PLAYHEAD_REDACTED_COUNT] = scrub.count - before
            if scrub.unpacked:
                attributes[a.PLAYHEAD_REDACTED_UNPACKED] = scrub.unpacked
        self._arrived += 1
        if content:
            self._unhashed.append(kept)
            self._unhashed_bytes += len(kept)
            if self._unhashed_bytes > HASHED_BYTES:
                self._hash()
        decision = self.decision
        played = isinstance(decision, Played) and decision.elsewhere and not decision.past(self._arrived)
        elsewhere = played or not content or not whole
        body = Content(b"", len(kept)) if elsewhere else Content(b"", len(kept), kept)
        self._append(e.PLAYHEAD_EXCHANGE_DATA, attributes, body, at)
        return kept

    def body_piece(self, data: bytes) -> bytes:
        """Record a piece of a request body; returns what went on tape.

        The last bytes wait for the next piece, or for `body_sent`.
        """
        if not self._driver.content:
            return self._sent_piece(data, 0)
        if self._pieces is None:
            self._pieces = Body(self._driver.redactor)
        return self._sent_piece(*self._pieces.add(data))

    def body_sent(self) -> bytes:
        """Record what waits of a request body, which is sent; returns what went on tape."""
        return b"" if self._pieces is None else self._sent_piece(*self._pieces.rest())

    def sent(self, data: bytes, more: Mapping[str, Any] | None = None) -> bytes:
        """Record a piece of a stream that is read while it is written; returns what went on tape.

        ``more``: attributes of the fact.
        """
        kept, count = self._redacted(data)
        return self._sent_piece(kept, count, {**(more or {})}, always=True)

    def _redacted(self, data: bytes) -> tuple[bytes, int]:
        """The next message or piece of a stream without credentials, and how many were replaced."""
        if self._messages is None:
            self._messages = Messages(self._driver.redactor)
        return self._messages.add(data)

    def _sent_piece(
        self, kept: bytes, count: int, more: Mapping[str, Any] = NO_MORE, *, always: bool = False
    ) -> bytes:
        if not kept and not always:
            return b""
        attributes: dict[str, Any] = {a.PLAYHEAD_EXCHANGE_DIRECTION: "out", **more}
        if count:
            attributes[a.PLAYHEAD_REDACTED_COUNT] = count
        body = Content(b"", len(kept), kept if self._driver.content else None)
        self._append(e.PLAYHEAD_EXCHANGE_DATA, attributes, body)
        return kept

    def message(self, data: bytes, attributes: Mapping[str, Any] | None = None) -> None:
        """A message is about to be sent. `ExchangeUnmatched` if the tape has a different one here."""
        kept, count = self._redacted(data)
        values: dict[str, Any] = {a.PLAYHEAD_EXCHANGE_DIRECTION: "out", **(attributes or {})}
        if count:
            values[a.PLAYHEAD_REDACTED_COUNT] = count
        number, self._sent = self._sent, self._sent + 1
        decision = self.decision
        body = Content(b"", len(kept), kept if self._driver.content else None)
        found = decision.difference(number, kept, values) if isinstance(decision, Played) else ""
        if isinstance(found, str) and found:
            values[a.PLAYHEAD_VOLATILE_PAIRS] = found
        self._append(e.PLAYHEAD_EXCHANGE_DATA, values, body)
        if not isinstance(found, str):
            error = ExchangeUnmatched(
                f"message {number + 1} is not the one on the tape",
                cause=f"first difference at {found.path}: tape {found.tape}, now {found.now}",
            )
            self._refuse(error)
            raise error
        if isinstance(decision, Refused):
            raise decision.error

    def missing(self) -> int:
        """Number of messages that the program must still send before the next item may arrive."""
        decision = self.decision
        return decision.after(self._arrived) - self._sent if isinstance(decision, Played) else 0

    def exhausted(self, error: PlayheadError) -> None:
        """The tape ends here: from now on the decision is `Refused` with ``error``."""
        self._refuse(error)

    def _refuse(self, error: PlayheadError) -> None:
        if isinstance(self.decision, Played):
            self._driver.gate.skip(self.decision.deliveries(self._arrived))
        self.decision = Refused(error)

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
        """End the exchange. True for the first call only. Idempotent, lock-free, safe in a finalizer.

        ``values``, ``body``: of the fact, without credentials. ``goes_on``: more pieces may follow.
        """
        try:
            self._open.pop()
        except IndexError:
            return False
        attributes: dict[str, Any] = {a.PLAYHEAD_END_HOW: how, **(values or {}), **self._at_end()}
        if not goes_on and (self._answer is not None or self._unhashed):
            attributes[a.PLAYHEAD_END_DIGEST] = self.answer_digest = self._hash().hexdigest()
        if error is not None:
            attributes |= error_attributes(error)
            self.answer_digest = self.answer_digest or f"{error.qualname}: {error.message}"
        if isinstance(self.decision, Refused):
            attributes[a.PLAYHEAD_FIDELITY] = Fidelity.BLOCKED
        self._append(e.PLAYHEAD_EXCHANGE_END, attributes, body, at)
        if isinstance(self.decision, Played) and not goes_on:
            self._driver.gate.skip(self.decision.deliveries(self._arrived))
        elif isinstance(self.decision, Live) and self.decision.ended is not None:
            self.decision.ended(self.id)
        self.ended = End(how, at, error, self.time_ns)
        if self._driver.control is not None:
            self._driver.control.ended(self)
        return True

    def _hash(self) -> blake3.blake3:
        """Take the latest chunks into the digest: many at a time, which is faster than each alone."""
        answer = self._answer = self._answer or blake3.blake3()
        answer.update(b"".join(self._unhashed))
        self._unhashed.clear()
        self._unhashed_bytes = 0
        return answer

    def _at_end(self) -> Mapping[str, Any]:
        """Further attributes of the end fact."""
        return {}

    def intervened(
        self,
        name: str,
        attributes: dict[str, Any],
        body: Content | None = None,
        at: Delivery | None = None,
    ) -> None:
        """Append a fact about what was done to the exchange before it went out."""
        self._append(name, attributes, body, at)

    def _append(
        self, name: str, attributes: dict[str, Any], body: Content | None, at: Delivery | None = None
    ) -> None:
        self.time_ns = now_ns = REAL.time_ns()
        sink = self._driver.sink
        if sink.instance != self._instance:
            return  # inherited
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
        try:
            self.last_seq = sink.append(fact)
        except Exception:
            log.debug("playhead could not keep a fact of an exchange", exc_info=True)


def ids_of(span: SpanContext | None) -> SpanIds:
    """The ids of a span as facts have them."""
    return NO_SPAN if span is None else (span.trace_id.to_bytes(16), span.span_id.to_bytes(8))


def error_attributes(error: ErrorRecord) -> dict[str, Any]:
    """The attributes of a fact that describe an error."""
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
