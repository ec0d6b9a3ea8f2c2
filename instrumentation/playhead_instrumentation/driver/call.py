"""A call: one exchange that is going on, as the boundary that moves its bytes sees it.

Every method appends its fact before it returns: the fact is on the tape before the program sees its
consequence.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import blake3

from playhead_instrumentation.driver.gate import Turn
from playhead_instrumentation.driver.verdict import Live, Played, Refused, Verdict
from playhead_instrumentation.runtime import lanes
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.errors import ExchangeUnmatched, PlayheadError
from playhead_semconv.facts import (
    Content,
    Delivery,
    End,
    EndedHow,
    ErrorRecord,
    ExchangeId,
    Fact,
    Fidelity,
)

if TYPE_CHECKING:
    from playhead_instrumentation.driver.driver import Driver


log = logging.getLogger(__name__)


class Scrub(Protocol):
    """Takes secrets out of an answer as it comes; lengths stay."""

    count: int
    """Values that were scrubbed so far."""
    unpacked: str
    """The content coding that what comes stands on the tape without; empty for none."""

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
        if due is None and verdict.reopen is None and not verdict.made:
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
        turn: Any = gate.arrive(due, self.id)
        if not hasattr(turn, "stays"):  # nobody is held back
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

    def part(
        self,
        data: bytes,
        at: Delivery | None,
        more: Mapping[str, Any] | None = None,
        *,
        whole: bool = True,
    ) -> bytes:
        """A piece of the answer; what of it went on tape. ``more``: attributes of the fact.

        ``whole``: False keeps its size only.
        """
        attributes: dict[str, Any] = dict(more or {})
        kept = data
        if self.scrub is not None:
            before = self.scrub.count
            kept = self.scrub.chunk(data)
            if self.scrub.count != before:
                attributes[a.PLAYHEAD_REDACTED_COUNT] = self.scrub.count - before
            if self.scrub.unpacked:
                attributes[a.PLAYHEAD_REDACTED_UNPACKED] = self.scrub.unpacked
        self._arrived += 1
        if self._driver.content:
            if self._answer is None:
                self._answer = blake3.blake3()
            self._answer.update(kept)
        verdict = self.verdict
        played = isinstance(verdict, Played) and verdict.elsewhere and not verdict.past(self._arrived)
        elsewhere = played or not self._driver.content or not whole
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
        found = verdict.difference(number, kept, values) if isinstance(verdict, Played) else ""
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
        attributes: dict[str, Any] = {a.PLAYHEAD_END_HOW: how, **(values or {}), **self._at_end()}
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

    def _at_end(self) -> Mapping[str, Any]:
        """More attributes of the end fact."""
        return {}

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
        try:
            self.last_seq = self._driver.sink.append(fact)
        except Exception:
            log.debug("playhead could not keep a fact of an exchange", exc_info=True)


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
