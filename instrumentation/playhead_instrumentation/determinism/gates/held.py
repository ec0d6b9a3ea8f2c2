"""A gate that holds things back until all is quiet: what a strict recording and a replay share.

Who wants to enter waits in a line; whenever everybody else waits too, the line says who goes next.
"""

from __future__ import annotations

import _thread
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable

from playhead_instrumentation.determinism.hooks import waits
from playhead_instrumentation.determinism.scheduler import idle_loops
from playhead_instrumentation.determinism.scheduler.turn_ledger import Quiet
from playhead_instrumentation.determinism.scheduler.turn_waits import Waiting
from playhead_instrumentation.driver.gate import Turn
from playhead_semconv.facts import Delivery, ExchangeId


class HeldGate:
    """Safe from any thread."""

    level: str

    def __init__(
        self,
        *,
        live: bool,
        poll_s: float,
        hold_s: float,
        computing_hold_s: float,
    ) -> None:
        """``poll_s``: how often somebody who waits looks whether those who seem to run are stuck.

        ``live``: the world outside answers, not a tape. ``hold_s``, ``computing_hold_s``: see `Quiet`.
        """
        self._lock = threading.RLock()
        self.poll_s = poll_s
        self._closed = False
        self.on_spun: Callable[[Delivery, int], None] = _nobody
        """Told of what entered while a loop spun, and for how many ticks it had by then."""
        self._spun: int | None = None
        """So many ticks the loop has spun that looks whether somebody may enter; None: none does."""
        self._spinner: _Spinner | None = None
        self.books = Quiet(
            self._lock,
            self.advance,
            self._forked,
            hold_s=hold_s,
            computing_hold_s=computing_hold_s,
        )
        waits.keep(self.books, live=live, loosen=self.loosen)
        idle_loops.watch(self)

    @abstractmethod
    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Turn:
        """Something has come."""

    @abstractmethod
    def never(self, who: ExchangeId | None = None, after_s: float | None = None) -> Turn:
        """Something will not come."""

    def ripe(self, due: Delivery | None) -> bool:
        """A poll finds what the tape says."""
        return True

    @abstractmethod
    def skip(self, dues: Iterable[Delivery]) -> None:
        """Nobody will come for these."""

    def loosen(self) -> None:
        """A tape has its order, whatever it is."""

    def expects(self) -> bool:
        """There is no tape."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Let everybody through."""

    @abstractmethod
    def unwatched(self, waiter: Waiting) -> None:
        """``waiter`` is about to wait in an event loop that cannot be looked at."""

    @abstractmethod
    def _anybody(self) -> bool:
        """Whether somebody waits."""

    @abstractmethod
    def _next(self) -> Waiting | None:
        """All is quiet: who goes."""

    @abstractmethod
    def _joins(self, waiter: Waiting) -> bool:
        """Somebody begins to wait; True if it need not."""

    @abstractmethod
    def _passed(self, waiter: Waiting) -> Waiting | None:
        """Somebody who was let through goes on; who follows without waiting for quiet."""

    @abstractmethod
    def _left(self, waiter: Waiting) -> None:
        """Somebody waits no longer."""

    @abstractmethod
    def _forked(self) -> None:
        """This is the child of a fork: nobody waits. Called with the lock."""

    def advance(self) -> None:
        """Let the next one through, if it is time."""
        with self._lock:
            if self._closed or not self._anybody():
                return
            if not (self.books.quiet() or self.books.overdue()):
                return
            waiter = self._next()
            if waiter is not None:
                self._let_through(waiter)

    def enter(self, waiter: Waiting) -> bool:
        """``waiter`` begins to wait; True if it need not."""
        with self._lock:
            if waiter.given_up:
                return True
            at_once = self._joins(waiter)
            if at_once:
                waiter.came = True
                self._entered()
                if waiter.blocks:
                    self.books.wake(waiter.place)  # before somebody else finds all quiet
            return at_once

    def _entered(self) -> None:
        if self._spun is not None:
            self._spun = 0

    def goes_on(self) -> None:
        """Somebody who need not wait runs on in this thread."""
        self.books.goes_on()

    def went_on(self, waiter: Waiting) -> None:
        """``waiter`` goes on."""
        with self._lock:
            follower = self._passed(waiter)
            if follower is not None:
                self._let_through(follower)

    def leave(self, waiter: Waiting) -> None:
        """``waiter`` was cancelled."""
        with self._lock:
            self._left(waiter)
        self.went_on(waiter)

    def dismiss(self, waiter: Waiting) -> None:
        """``waiter`` is to wait no longer, wherever it does."""
        with self._lock:
            if waiter.came:
                return
            waiter.given_up = True
            self._left(waiter)
            self._let_through(waiter)

    def block(self, waiter: Waiting) -> None:
        """Wait in this thread."""
        self.books.waits()
        try:
            while not waiter.opened.acquire(timeout=self.poll_s):
                self.advance()
        except BaseException:
            self.leave(waiter)
            raise
        finally:
            self.books.goes_on()

    def _let_through(self, waiter: Waiting) -> None:
        self._entered()
        if waiter.blocks or self.books.selects(waiter.place):
            self.books.wake(waiter.place)
        if not waiter.let_through():
            self.went_on(waiter)
        if self._spun == 0:
            self._goes_round()

    def closed(self) -> bool:
        """Whether nobody is held back any more."""
        return self._closed

    def anybody(self) -> bool:
        """Whether somebody waits."""
        return self._anybody()

    def spins(self, ticks: int) -> bool:
        """The loop of this thread has spun for so many ticks; whether somebody was let through.

        One is, at most: this thread is next after it.
        """
        spinner = _Spinner()
        with self._lock:
            self._spinner, self._spun = spinner, ticks
            self.books.selecting(None, spins=True)
            owes = self._owes(ticks)
            if not owes:
                self._goes_round()
        while owes and not spinner.opened.acquire(timeout=self.poll_s):
            self.advance()
            with self._lock:
                owes = self._owes(ticks)
                if not owes:
                    self._goes_round()
        self.books.goes_on()
        return spinner.over

    def _owes(self, ticks: int) -> bool:
        """Whether somebody is still to enter before a loop goes on that has spun for so many ticks."""
        return False

    def _goes_round(self) -> None:
        """The loop that spins goes on."""
        spinner, self._spinner = self._spinner, None
        if spinner is not None:
            spinner.over, self._spun = not self._spun, None
            self.books.wake(spinner.place)
            spinner.opened.release()


class _Spinner:
    """A loop that spins, and has stopped to look."""

    __slots__ = ("opened", "over", "place")

    def __init__(self) -> None:
        self.place = threading.get_ident()
        self.opened = _thread.allocate_lock()
        self.opened.acquire()
        self.over = False
        """Whether somebody was let through."""


def _nobody(at: Delivery, ticks: int) -> None:
    """Nobody wants to know."""
