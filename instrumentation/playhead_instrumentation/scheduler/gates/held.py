"""A gate that holds arrivals back until everything is idle. Base of strict recordings and replays.

Arrivals wait in a queue. Whenever all threads of the program wait (`ThreadLedger.is_idle`), the subclass
says which waiter goes next. The invariant: nothing enters while a thread still works on what entered
before. Otherwise the consequences of two arrivals would mix, in an order that no tape holds. A thread
that is stuck must not stop the program for ever: the ledger withdraws its permit (`overdue`).
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable

from playhead_core.facts import Delivery, ExchangeId
from playhead_core.process.interpreter_threads import get_ident, make_lock
from playhead_instrumentation.recorder.gate import Permit
from playhead_instrumentation.scheduler import idle_loops
from playhead_instrumentation.scheduler.hooks import waits
from playhead_instrumentation.scheduler.ledger import ThreadLedger
from playhead_instrumentation.scheduler.permit_waits import Waiting


class HeldGate:
    """Usable from any thread."""

    level: str

    def __init__(
        self,
        *,
        live: bool,
        poll_s: float,
        hold_s: float,
        computing_hold_s: float,
    ) -> None:
        """``poll_s``: seconds between checks of a waiter whether the running threads are stuck.

        ``live``: the outside world answers, not a tape. ``hold_s`` and ``computing_hold_s``: see
        `ThreadLedger`.
        """
        self.lock = self._lock = threading.RLock()
        self.poll_s = poll_s
        self._closed = False
        self._waiters: set[Waiting] = set()
        """Those that wait. They are held back no more once the gate is closed."""
        self.on_spun: Callable[[Delivery, int], None] = _ignore
        """Called with a delivery that entered while a loop was spinning, and its number of ticks."""
        self.on_entered: Callable[[Waiting], None] = nothing
        """Called with each waiter that has entered, in its thread."""
        self._spun: int | None = None
        """Ticks of the spinning loop that has stopped to let somebody enter; None: there is none."""
        self._spinner: _Spinner | None = None
        self.ledger = ThreadLedger(
            self._lock,
            self.advance,
            self._forked,
            hold_s=hold_s,
            computing_hold_s=computing_hold_s,
        )
        waits.keep(self.ledger, live=live, loosen=self.loosen)
        idle_loops.watch(self)

    @abstractmethod
    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Permit:
        """The permit of something that has arrived."""

    @abstractmethod
    def never(self, who: ExchangeId | None = None, after_s: float | None = None) -> Permit:
        """The permit of something that will not arrive."""

    def is_due(self, due: Delivery | None) -> bool:
        """Always: a poll gets the answer of the tape."""
        return True

    @abstractmethod
    def skip(self, dues: Iterable[Delivery]) -> None:
        """Drop these deliveries; no waiter will claim them."""

    def loosen(self) -> None:
        """No-op: the order of a tape is kept in any case."""

    def step_down(self) -> bool:
        """Let all waiters through; the level of a tape stays."""
        self.close()
        return False

    def expects(self) -> bool:
        """Whether the tape has further deliveries: there is no tape."""
        return False

    def alone(self) -> Delivery | None:
        """At a replay: what comes from the world has no place in the order of the tape."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Let all waiters through."""

    @abstractmethod
    def unwatched(self, waiter: Waiting) -> None:
        """``waiter`` is about to wait in an event loop whose idleness cannot be detected."""

    @abstractmethod
    def _next(self) -> Waiting | None:
        """Everything is idle and somebody waits: the waiter to let through, or None."""

    @abstractmethod
    def _joins(self, waiter: Waiting) -> bool:
        """Add a waiter; True if it may enter immediately."""

    @abstractmethod
    def _passed(self, waiter: Waiting) -> Waiting | None:
        """A waiter that was let through continues. Returns the one that follows it at once, or None."""

    @abstractmethod
    def _left(self, waiter: Waiting) -> None:
        """Remove a waiter."""

    def _forked(self) -> None:
        """In the child of a fork: remove all waiters. Called with the lock."""
        for waiter in self._waiters:
            self._left(waiter)
        self._waiters.clear()

    def advance(self) -> None:
        """Let the next waiter through if everything is idle."""
        with self._lock:
            if self._closed or not self._waiters:
                return
            if not (self.ledger.is_idle() or self.ledger.overdue()):
                return
            waiter = self._next()
            if waiter is not None:
                self._let_through(waiter)

    def enter(self, waiter: Waiting) -> bool:
        """``waiter`` arrives; True if it may enter immediately."""
        with self._lock:
            if waiter.given_up:
                return True
            at_once = self._joins(waiter)
            if at_once:
                waiter.came = True
                self._entered()
                if waiter.blocks:
                    self.ledger.wake(waiter.place)  # before another thread finds everything idle
            else:
                self._waiters.add(waiter)
        if at_once:
            self.on_entered(waiter)
        return at_once

    def _entered(self) -> None:
        if self._spun is not None:
            self._spun = 0

    def goes_on(self) -> None:
        """This thread continues; its waiter entered immediately."""
        self.ledger.goes_on()

    def went_on(self, waiter: Waiting) -> None:
        """``waiter`` continues after it was let through."""
        with self._lock:
            follower = self._passed(waiter)
            if follower is not None:
                self._let_through(follower)
        if waiter.came:
            self.on_entered(waiter)

    def leave(self, waiter: Waiting) -> None:
        """``waiter`` was cancelled."""
        with self._lock:
            self._waiters.discard(waiter)
            self._left(waiter)
        self.went_on(waiter)

    def dismiss(self, waiter: Waiting) -> None:
        """End the wait of ``waiter``, from any thread."""
        with self._lock:
            if waiter.came:
                return
            waiter.given_up = True
            self._left(waiter)
            self._let_through(waiter)

    def block(self, waiter: Waiting) -> None:
        """Block this thread until ``waiter`` is let through."""
        try:
            # Inside the block: as soon as the thread counts as waiting, a signal handler may raise.
            self.ledger.waits()
            while not waiter.opened.acquire(timeout=self.poll_s):
                self.advance()
        except BaseException:
            self.leave(waiter)
            raise
        finally:
            self.ledger.goes_on()

    def _let_through(self, waiter: Waiting) -> None:
        self._waiters.discard(waiter)
        self._entered()
        if waiter.blocks or self.ledger.selects(waiter.place):
            self.ledger.wake(waiter.place)
        if not waiter.let_through():
            self.went_on(waiter)
        if self._spun == 0:
            self._goes_round()

    def closed(self) -> bool:
        """Whether the gate no longer holds anything back."""
        return self._closed

    def anybody(self) -> bool:
        """Whether there are waiters."""
        return bool(self._waiters) and not self._closed

    def spins(self, ticks: int) -> bool:
        """This thread's loop has spun for ``ticks``. Returns whether a waiter was let through.

        At most one is; this thread has the next permit after it.
        """
        spinner = _Spinner()
        with self._lock:
            self._spinner, self._spun = spinner, ticks
            self.ledger.selecting(None, spins=True)
            owes = self._owes(ticks)
            if not owes:
                self._goes_round()
        while owes and not spinner.opened.acquire(timeout=self.poll_s):
            self.advance()
            with self._lock:
                owes = self._owes(ticks)
                if not owes:
                    self._goes_round()
        self.ledger.goes_on()
        return spinner.over

    def _owes(self, ticks: int) -> bool:
        """Whether a delivery must enter before a loop continues that has spun for ``ticks``."""
        return False

    def _goes_round(self) -> None:
        """Let the spinning loop continue."""
        spinner, self._spinner = self._spinner, None
        if spinner is not None:
            spinner.over, self._spun = not self._spun, None
            self.ledger.wake(spinner.place)
            spinner.opened.release()


class _Spinner:
    """A spinning loop that has stopped to let somebody enter."""

    __slots__ = ("opened", "over", "place")

    def __init__(self) -> None:
        self.place = get_ident()
        self.opened = make_lock()
        self.opened.acquire()
        self.over = False
        """Whether a waiter was let through."""


def _ignore(at: Delivery, ticks: int) -> None:
    """No-op callback."""


def nothing(waiter: Waiting) -> None:
    """No-op callback."""
