"""Delivers the tape of one process instance to the endpoint, request by request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from playhead_core.otlp_bytes import WINDOW_BYTES, window_request
from playhead_exporter.delivery import Signal
from playhead_exporter.shipping.endpoint_answers import (
    Accepted,
    Declined,
    Transport,
    TryLater,
    Unwelcome,
)
from playhead_exporter.shipping.reporting import Reporting
from playhead_exporter.spool.segments import Segments, SpoolBatch, read_batch

if TYPE_CHECKING:
    from playhead_exporter.shipping.requests import Request

READ_BYTES = 4 * 1024 * 1024
"""Bytes read at a time where records are sent one by one."""
SMALL_BYTES = 64 * 1024
"""A smaller record is not given up as too large, whatever the endpoint says."""


class BatchRequest:
    """Consecutive records as the spool holds them, compressed."""

    signal = Signal.LOGS

    def __init__(self, batch: SpoolBatch, instance: bytes) -> None:
        self.batch = batch
        self._instance = instance
        self._body = b""

    def body(self) -> bytes:
        """Return the OTLP request. It is built once, because its record is compressed."""
        if not self._body:
            batch = self.batch
            self._body = window_request(
                batch.tape, batch.first, batch.last, self._instance, batch.resource
            )
        return self._body


class TapeDelivery:
    """Sends the tape of one instance, request by request, in order.

    This object does not send an accepted request again, even when a later one has to wait.
    """

    def __init__(
        self,
        segments: Segments,
        transport: Transport,
        reporting: Reporting,
        reads_batches: Callable[[], bool] = lambda: False,
    ) -> None:
        """``reads_batches``: whether the endpoint reads batch records."""
        self._segments = segments
        self._transport = transport
        self._rejected = reporting.rejected
        self._notices = reporting.notices
        self._tally = reporting.tally
        self._reads_batches = reads_batches
        self._in_batches = True
        """Whether to send batch records: true until the endpoint refuses one."""
        self._queue: list[Request | BatchRequest] = []
        self.position = segments.load()
        """Everything before this position is delivered."""
        self.facts = 0
        """How many facts have been delivered."""
        self.is_watched = True
        """Whether a live page or an alert may wait for data."""
        self._end = self.position
        self._kept_copies: set[int] = set()
        """Damaged segments of which a copy was kept."""
        self._facts = self._spans = self._logs = 0

    @property
    def instance(self) -> bytes:
        """The process instance whose tape it is."""
        return self._segments.instance

    def step(self, timeout_s: float) -> bool | TryLater | Unwelcome:
        """Send one request. True: sent; False: nothing to send; else the endpoint's answer."""
        if not self._queue and not self._fill():
            return False
        if not self._queue:
            return self._advance()
        request = self._queue[0]
        body = request.body()
        if isinstance(request, BatchRequest):
            return self._step_of(request, body, timeout_s)
        answer = self._transport.send(request.signal, body, timeout_s)
        if isinstance(answer, Declined):
            if len(request.items) == 1 and answer.too_large and len(body) < SMALL_BYTES:
                return TryLater(answer.reason)
            self._refused(request, answer.reason)
        elif isinstance(answer, Accepted):
            self._queue.pop(0)
            self._tally.requests += 1
            self._partly(request.signal, answer)
        else:
            return answer
        return self._advance() if not self._queue else True

    def _step_of(
        self, request: BatchRequest, body: bytes, timeout_s: float
    ) -> bool | TryLater | Unwelcome:
        """Send a batch record.

        If it is not taken completely, send its records one by one to find the refused one.
        """
        answer = self._transport.send(request.signal, body, timeout_s, compressed=True)
        if isinstance(answer, Declined) or (isinstance(answer, Accepted) and answer.refused):
            self._in_batches = False
            self._queue[:1] = self._requests(request.batch)
        elif isinstance(answer, Accepted):
            self._queue.pop(0)
            self._tally.requests += 1
            self._partly(request.signal, answer)
        else:
            return answer
        return True if self._queue else self._advance()

    def _fill(self) -> bool:
        as_batch = self._in_batches and self._reads_batches()
        batch = read_batch(self._segments, self.position, WINDOW_BYTES if as_batch else READ_BYTES)
        if batch.damage:
            self._damaged(batch)
        self._end = batch.end
        self._facts, self._spans, self._logs = batch.facts, batch.spans, batch.logs
        if not batch.count:
            self._queue = []
        elif as_batch and len(batch.tape) <= WINDOW_BYTES:
            self._queue = [BatchRequest(batch, self.instance)]
        else:
            self._queue = [*self._requests(batch)]
        return bool(self._queue) or batch.end != self.position

    def _damaged(self, batch: SpoolBatch) -> None:
        """Report the damage and keep a copy of the segment, since delivered segments are deleted."""
        number, kept = batch.segment, ""
        self._tally.damaged += 1
        if number not in self._kept_copies:
            self._kept_copies.add(number)
            data = bytes(self._segments.data(number)).rstrip(b"\0")
            kept = self._rejected.keep_segment(self.instance, number, data, batch.damage)
        self._notices.say(
            f"damage {self.instance.hex()}",
            f"the spool of {self.instance.hex()} is damaged: {batch.damage};"
            f" delivery continues after it, and the run shows what is missing{kept}",
        )

    def _requests(self, batch: SpoolBatch) -> list[Request]:
        from playhead_exporter.shipping.requests import (
            requests_of_good,
        )  # expensive; batches do not need it

        requests, problems = requests_of_good(batch.records(), self.instance, batch.resource)
        for problem in problems:
            self._tally.rejected += 1
            self._notices.say("unpackable", f"a record cannot be sent and is lost: {problem}")
        return requests

    def _advance(self) -> bool:
        self._tally.facts += self._facts
        self.facts += self._facts
        self._tally.spans += self._spans
        self._tally.logs += self._logs
        self._facts = self._spans = self._logs = 0
        self.position = self._end
        self._segments.delivered(self.position)
        return True

    def _refused(self, request: Request, reason: str) -> None:
        """Halve the request, until the refused record is alone in one."""
        if len(request.items) > 1:
            self._queue[:1] = request.halves()
            return
        self._queue.pop(0)
        self._tally.rejected += 1
        self._rejected.keep(request, self._segments.instance, reason)

    def _partly(self, signal: Signal, answer: Accepted) -> None:
        self.is_watched = answer.watched
        if answer.refused:
            self._tally.partly_refused += answer.refused
            kind = "spans" if signal is Signal.TRACES else "log records"
            self._notices.say(
                f"partly {signal}",
                f"the endpoint refused {answer.refused} {kind} and kept the rest: {answer.message}",
            )
        elif answer.message:
            self._notices.say(f"warning {signal}", f"the endpoint says: {answer.message}")
