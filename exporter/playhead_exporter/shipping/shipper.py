"""The thread that delivers the tape of this process and the tapes that dead processes left."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import msgspec
from opentelemetry import context
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY  # pyright: ignore[reportPrivateUsage]

from playhead_core.errors import ReceiverPath, ReceiverRefused
from playhead_core.process.interpreter_threads import Bell, Thread, Waiters
from playhead_exporter.shipping.endpoint_answers import About, Transport, TryLater, Unwelcome
from playhead_exporter.shipping.reporting import Reporting
from playhead_exporter.shipping.tape_delivery import TapeDelivery
from playhead_exporter.spool.folders import SpoolFolders
from playhead_exporter.spool.recovery import Left, take_left
from playhead_exporter.spool.segments import LiveSegments, Position, Segments

REQUEST_TIMEOUT_S = 10.0
FIRST_BACKOFF_S = 0.25
LONGEST_BACKOFF_S = 30.0
LEFT_EVERY_S = 30.0
REPORT_AFTER_FAILURES = 3
UNWATCHED = 5
"""Factor by which the interval is longer while no live page and no alert waits for data."""

_JITTER = random.SystemRandom()
"""Not the generator behind the functions of `random`: the program may depend on its next values."""


class Backoff(msgspec.Struct):
    """When to try again: exponential backoff with jitter, or when the endpoint asks for it."""

    failures: int = 0
    not_before: float = 0.0
    """Time of `time.monotonic` before which the endpoint does not want to be asked."""

    def failed(self, answer: TryLater | Unwelcome) -> float:
        """Return the seconds to wait after ``answer``."""
        self.failures += 1
        longest = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(self.failures, 16))
        wait_s = longest * _JITTER.uniform(0.5, 1.0)
        if isinstance(answer, Unwelcome):
            wait_s = LONGEST_BACKOFF_S
        elif answer.after_s is not None:
            wait_s = answer.after_s * _JITTER.uniform(1.0, 1.1)
            self.not_before = time.monotonic() + answer.after_s
        return wait_s

    def succeeded(self) -> None:
        """The endpoint has answered."""
        self.failures = 0
        self.not_before = 0.0


class Route(msgspec.Struct, frozen=True):
    """How records reach the endpoint."""

    open_transport: Callable[[], Transport]
    on_about: Callable[[About], None] | None = None
    """Called with what the endpoint is; None: it is not asked."""
    interval_s: float = 0.0
    """Seconds between requests while records keep coming."""


class Shipper:
    """Delivers in a thread of its own and never gives up: what is not delivered stays in the spool."""

    def __init__(
        self,
        folders: SpoolFolders,
        route: Route,
        reporting: Reporting,
        *,
        live: LiveSegments | None = None,
        only: frozenset[bytes] | None = None,
    ) -> None:
        """``live``: this process's own tape, if it has one.

        ``only``: the dead processes to take care of; None: all.
        """
        self._only = only
        self._live = live
        self._folders = folders
        self._route = route
        self._on_about = route.on_about
        self._reporting = reporting
        self._notices = reporting.notices
        self._reads_batches = False
        """Whether the endpoint has declared that it reads batch records."""
        self._backoff = Backoff()
        self._started = 0.0
        self._bell = Bell()
        self._urgent = False
        """Whether a caller waits for a round."""
        self._heard = False
        self._is_watched = True
        self._stopping = False
        self._changed = Waiters()
        self._rounds_begun = 0
        self._round_failed = 0
        """Number of the last round that failed."""
        self._left_rounds = 0
        self._left_due = 0.0
        self.tally = reporting.tally
        self.is_accepting: bool | None = None
        """Whether the endpoint accepted the last request; None: it has not answered yet."""
        self.position = Position(0, 0)
        """Everything of our own before this position is delivered."""
        self.own_facts = 0
        """How many facts of our own are delivered."""
        self.thread = Thread("playhead-shipper", self._run)

    def start(self) -> None:
        """Begin to deliver."""
        self._started = time.monotonic()
        self.thread.start()

    def stop(self, timeout_s: float) -> None:
        """Stop after the request in progress; wait at most ``timeout_s`` for it."""
        self._stopping = True
        self._wake_now()
        if self.thread.is_alive():
            self.thread.join(timeout_s)

    def news(self) -> None:
        """Wake the thread: something was appended after a pause."""
        self._bell.ring()

    def _wake_now(self) -> None:
        self._urgent = True
        self._bell.ring()

    def wait_for_answer(self, patience_s: float) -> bool:
        """Wait for the first answer of the endpoint; returns whether it accepts requests.

        Waits until ``patience_s`` after the start of the thread at most.
        """
        left_s = self._started + patience_s - time.monotonic()
        self._changed.wait_for(lambda: self.is_accepting is not None, max(0.0, left_s))
        return bool(self.is_accepting)

    def flush(self, mark: Position | None, timeout_s: float, left: bool = False) -> bool:
        """Deliver up to ``mark`` now, with ``left`` also what dead processes left.

        Returns False as soon as an attempt that began after the call fails, or after ``timeout_s``.
        """
        if self._backoff.not_before > time.monotonic():
            return self._at(mark)
        if not self.thread.is_alive():
            return self._at(mark)
        begun, rounds = self._rounds_begun, self._left_rounds
        if left:
            self._left_due = 0.0
        self._wake_now()
        self._changed.wait_for(
            lambda: (
                self._round_failed > begun
                or self._backoff.not_before > time.monotonic()
                or (self._at(mark) and (not left or self._left_rounds > rounds))
            ),
            timeout_s,
        )
        return self._at(mark) and self._round_failed <= begun

    def deliver_left_once(self, attempts: int) -> str:
        """Deliver what dead processes left, in the caller's thread.

        Returns an empty text, or the endpoint's answer to the last of ``attempts`` failed requests in a
        row.
        """
        token = context.attach(context.set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        transport = self._route.open_transport()
        try:
            while True:
                problem = None if self._on_about is None else self._ask(transport, self._on_about)
                if problem is None:
                    problem = self._deliver_left(transport)
                if problem is None:
                    return ""
                wait_s = self._backoff.failed(problem)
                if isinstance(problem, Unwelcome) or self._backoff.failures >= attempts:
                    return problem.reason
                time.sleep(wait_s)
        finally:
            transport.close()
            context.detach(token)

    def _at(self, mark: Position | None) -> bool:
        return mark is None or self.position >= mark

    def _run(self) -> None:
        context.attach(context.set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        transport: Transport | None = None
        own: TapeDelivery | None = None
        while not self._stopping:
            self._urgent = False
            self._rounds_begun += 1
            try:
                if transport is None:
                    transport = self._route.open_transport()
                if own is None and self._live is not None:
                    own = self._delivery(self._live, transport)
                problem = self._round(own, transport)
            except Exception as unexpected:  # the thread must survive: nothing would start another one
                problem = TryLater(f"delivery failed: {unexpected!r}")
            wait_s = None if problem is None else self._backoff.failed(problem)
            self._settle(problem)
            if wait_s is None:
                self._sleep()
            else:
                self._pause(wait_s)
        if transport is not None:
            transport.close()
        if self._live is not None:
            self._live.close()

    def _pause(self, wait_s: float) -> None:
        """Wait ``wait_s``. A flush ends the wait, unless the endpoint said when to come again."""
        until = time.monotonic() + wait_s
        while not self._stopping and (left_s := until - time.monotonic()) > 0:
            if self._urgent and self._backoff.not_before <= time.monotonic():
                return
            self._bell.wait(left_s)

    def _sleep(self) -> None:
        """Wait for an append or until dead processes are due, then a while for a larger batch."""
        while not self._urgent and not self._has_news():
            if self._live is not None:
                self._live.request_wakeup()
                if self._has_news():
                    break
            left_s = self._left_due - time.monotonic()
            if left_s <= 0:
                return
            self._bell.wait(left_s)
        self._pause(self._route.interval_s * (1 if self._is_watched else UNWATCHED))

    def _has_news(self) -> bool:
        return self._live is not None and self._live.end() > self.position

    def _round(self, own: TapeDelivery | None, transport: Transport) -> TryLater | Unwelcome | None:
        """Deliver all there is; returns None, or the answer that stopped it."""
        if self._on_about is not None:
            problem = self._ask(transport, self._on_about)
            if problem is not None:
                return problem
            self._settle(None)
        if own is not None and self._live is not None:
            problem = self._deliver(own, self._live.end())
            if problem is not None:
                return problem
        if time.monotonic() >= self._left_due:
            problem = self._deliver_left(transport)
            if problem is not None:
                return problem
            self._left_due = time.monotonic() + LEFT_EVERY_S
            self._left_rounds += 1
        return None

    def _ask(self, transport: Transport, on_about: Callable[[About], None]) -> TryLater | None:
        """Ask the endpoint what it is, once."""
        about = transport.about(REQUEST_TIMEOUT_S)
        if isinstance(about, TryLater):
            return about
        self._heard = True
        self._reads_batches = about.reads_batches
        on_about(about)
        self._on_about = None
        return None

    def _deliver(
        self, delivery: TapeDelivery, until: Position | None = None
    ) -> TryLater | Unwelcome | None:
        """Deliver all records; of a growing tape, those that existed when the round began.

        Later records wait for the interval, and go in few requests instead of many.
        """
        while not self._stopping:
            try:
                answer = delivery.step(REQUEST_TIMEOUT_S)
            except OSError as problem:
                return TryLater(f"the spool cannot be read: {problem}")
            if answer is False:
                return None
            if answer is not True:
                return answer
            self._heard = True
            self._backoff.succeeded()
            self._is_watched = delivery.is_watched
            if self._live is not None and delivery.instance == self._live.instance:
                self.position = delivery.position
                self.own_facts = delivery.facts
                self._changed.tell()
            if until is not None and delivery.position >= until:
                return None
        return None

    def _deliver_left(self, transport: Transport) -> TryLater | Unwelcome | None:
        for instance in self._folders.instances():
            if self._stopping:
                return None
            if self._only is not None and instance not in self._only:
                continue
            left = self._take(instance)
            if left is None:
                continue
            delivered = False
            try:
                problem = self._deliver(self._delivery(left.segments, transport))
                delivered = problem is None and not self._stopping
            finally:
                if delivered:
                    left.remove()
                else:
                    left.release()
            if problem is not None:
                return problem
        return None

    def _take(self, instance: bytes) -> Left | None:
        if self._live is not None and instance == self._live.instance:
            return None
        try:
            return take_left(self._folders, instance)
        except OSError as problem:
            self._notices.say("left", f"the spool of a dead process cannot be read: {problem}")
            return None

    def _delivery(self, segments: Segments, transport: Transport) -> TapeDelivery:
        return TapeDelivery(segments, transport, self._reporting, lambda: self._reads_batches)

    def _undelivered(self) -> int:
        """Number of facts of this process that are not delivered yet."""
        return 0 if self._live is None else self._live.facts - self.own_facts

    def _settle(self, problem: TryLater | Unwelcome | None) -> None:
        """Report the outcome of a round, then notify the waiting threads."""
        if problem is None:
            self._backoff.succeeded()
            self._notices.over("endpoint", "the endpoint accepts data again")
        elif isinstance(problem, Unwelcome):
            error = ReceiverPath if problem.wrong_place else ReceiverRefused
            waiting = f"{self._undelivered()} facts spooled, none lost: playhead doctor"
            self._notices.fail("endpoint", error(problem.reason, cause=problem.hint, hint=waiting))
        elif self._backoff.failures >= REPORT_AFTER_FAILURES:
            self._notices.say(
                "endpoint", f"{problem.reason}; {self._undelivered()} facts wait in the spool, none lost"
            )
        if problem is not None or self._heard:
            self.is_accepting = problem is None
            self._heard = problem is None
        if problem is not None:
            self._round_failed = self._rounds_begun
        self._changed.tell()
