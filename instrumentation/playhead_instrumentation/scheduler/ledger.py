"""The ledger of threads: who runs, who waits, and whether all consequences of a delivery have happened.

The idea: a gate may let the next arrival in only when the program has done everything that follows from
the last one. The ledger knows that, because every wait of the program is reported to it. A *place* is a
thread (its `threading.get_ident`). It is busy from its start to its end, except while it waits: at the
gate, in a condition, a join, a sleep, in its event loop, for the next job of an executor, or, *away*,
for the outside world. Everything is idle when no place is busy and no ticket is out.

The invariant: one place runs at a time, in the order in which places were woken. A place that is woken
gets a *ticket* at that moment and runs when the ticket has its permit. Otherwise two woken threads would
run in the order in which the system schedules them, and a replay could not repeat that.

A stuck place (`stuck`) loses its permit: if it blocks in
something unknown, until it continues; if it computes, until its next call that the ledger sees.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Literal, TypeAlias, TypeVar

from playhead_core.process.interpreter_threads import get_ident, make_lock
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.scheduler import stuck, threads
from playhead_instrumentation.scheduler.stuck import Watched

T = TypeVar("T")

Rest: TypeAlias = Literal["waits", "runs"]

GRANTED_HOLD_S = 0.5
"""Seconds after which the permit is withdrawn from a ticket whose thread has not started to run."""

GUESS_S = 5.0
"""Seconds without processor time after which a stuck thread is taken to wait for good."""

CERTAIN_HOLD_S = 5.0
"""Seconds for which a thread is waited for that blocks in something which ends by itself."""

LOOKS = 20
"""How many more checks are made whether the granted thread, or one that it waits for, is runnable."""


class Ticket:
    """A position in the queue for the permit."""

    __slots__ = ("opened",)

    def __init__(self) -> None:
        self.opened = make_lock()
        self.opened.acquire()


class ThreadLedger:
    """The ledger and the permits: one place runs at a time, in the order in which places were woken.

    Each method takes the lock of the gate, which is reentrant. `goes_on`, `begins` and `claim` may block
    and must be called without it.
    """

    def __init__(
        self,
        lock: Any,
        changed: Callable[[], None],
        forked: Callable[[], None] = lambda: None,
        *,
        hold_s: float,
        computing_hold_s: float,
    ) -> None:
        """``changed``: called without the lock when a place begins to wait. ``forked``: in a child.

        ``hold_s``: how long a busy place that uses no processor time may hold up the others; halved each
        time, at most to a fourth. ``computing_hold_s``: processor time that a computing place may use.
        """
        self._lock = lock
        self._changed = changed
        self._forked = forked
        self._hold_s = hold_s
        self._computing_hold_s = computing_hold_s
        self._granted_hold_s = max(GRANTED_HOLD_S, 4 * hold_s)
        self._closed = False
        self._busy: set[int] = {get_ident()}
        self._idle: dict[int, float | None] = {}
        """Waiting place → when it continues by itself (`REAL.now_s`); None: it must be woken."""
        self._permits: deque[Ticket] = deque()
        self._granted: Ticket | None = None
        """The ticket that has the permit and whose thread has not started to run yet."""
        self._granted_s = 0.0
        self._granted_looks = 0
        self._waited_s = 0.0
        self._polled_s = REAL.now_s()
        self._reserved: dict[int, Ticket] = {}
        """Tickets of places that were woken."""
        self._joining: dict[threading.Thread, dict[int, Any]] = {}
        """Thread → places that join it, each with the lock that ends its join."""
        self._ended: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        self._loops: dict[int, tuple[Any, Callable[[], bool]]] = {}
        self._selecting: set[int] = set()
        """Places whose event loop is idle."""
        self._away: set[int] = set()
        """Places that wait for the outside world, whatever else they report meanwhile."""
        self._interrupted: dict[int, bool] = {}
        """Places that run the handler of a signal within a wait → whether it has ended the wait."""
        self._certain: set[int] = set()
        """Busy places that block in something which ends by itself."""
        self._watched: dict[int, Watched] = {}
        """State of busy places that hold up others."""
        self._stuck: dict[int, tuple[int, float]] = {}
        """Blocked place → processor time (ns) above which it has continued, and time of the loss (s)."""
        self._computing: set[int] = set()
        """Places that have computed too long."""
        self.on_lost: Callable[[int, str], None] = _ignore
        """Called, with the lock, with a place that lost its permit and the reason."""
        self._lost: set[tuple[int, str]] = set()

    def holds(self, hold_s: float, computing_hold_s: float) -> None:
        """Set how long busy places are waited for."""
        with self._lock:
            self._hold_s, self._computing_hold_s = hold_s, computing_hold_s

    def is_idle(self) -> bool:
        """Whether nothing will happen until the gate lets a waiter through or time passes."""
        with self._lock:
            if self._stuck:
                self._unstick()
            return not self._busy and self._no_thread_next()

    def alone(self) -> bool:
        """Whether all other threads are idle."""
        with self._lock:
            if self._stuck:
                self._unstick()
            others = len(self._busy) - (get_ident() in self._busy)
            return not others and self._no_thread_next()

    def _no_thread_next(self) -> bool:
        return self._granted is None and not self._permits and not self._ready()

    def for_good(self) -> bool:
        """Whether everything is idle and stays so however much time passes."""
        with self._lock:
            return self.is_idle() and all(until is None for until in self._idle.values())

    def guesses(self) -> bool:
        """Whether a place counts as waiting only because it recently used no processor time."""
        with self._lock:
            recently = REAL.now_s() - GUESS_S
            return any(since_s > recently for _, since_s in self._stuck.values())

    def rest(self) -> Rest | None:
        """``waits``: all places wait to be woken; ``runs``: some place runs or blocks.

        None: some place will continue by itself. Has no side effects.
        """
        with self._lock:
            if self._ready() or any(until is not None for until in self._idle.values()):
                return None
            runs = self._busy or self._stuck or self._computing or self._permits or self._granted
            return "runs" if runs else "waits"

    def computes(self) -> bool:
        """Whether a place has lost its permit because it computes."""
        with self._lock:
            return bool(self._computing)

    def latest_alarm(self) -> float:
        """Latest end of a sleep (`REAL.now_s`); 0: no place sleeps."""
        with self._lock:
            return max((until for until in self._idle.values() if until is not None), default=0.0)

    def overdue(self) -> bool:
        """Take the permit from stuck places; whether everything is idle then."""
        with self._lock:
            now = self.patience_s()
            if self._ready():
                return False
            for place in list(self._busy):
                watched = self._watched.get(place)
                if watched is None:
                    watched = self._watched[place] = Watched()
                holds = self._hold_s, self._computing_hold_s
                if place in self._certain:
                    holds = CERTAIN_HOLD_S, float("inf")
                how = watched.stuck(place, now, *holds, known=self._computing)
                if how is None:
                    continue
                self._busy.discard(place)
                self._loses(place, how)
                if how == "computes":
                    self._computing.add(place)
                else:
                    rests_ns = stuck.REST_NS if how == "rests" else 0
                    self._stuck[place] = threads.processor_time_ns(place) + rests_ns, REAL.now_s()
            if self._granted is not None and now - self._granted_s >= self._granted_hold_s:
                if self._granted_looks < LOOKS and threads.others_could_run(self._computing):
                    self._granted_looks += 1
                    self._granted_s = now - self._granted_hold_s / 2
                else:
                    self._granted = None
            self._grant()
            return not self._busy and self._granted is None and not self._permits

    def _loses(self, place: int, how: str) -> None:
        if (place, how) not in self._lost:
            self._lost.add((place, how))
            self.on_lost(place, how)

    def patience_s(self) -> float:
        """Clock (s) of the waiting threads: it does not advance while the process is not scheduled."""
        with self._lock:
            now = REAL.now_s()
            self._waited_s += min(now - self._polled_s, self._hold_s / 5)
            self._polled_s = now
            return self._waited_s

    def _grant(self) -> None:
        """Give the permit to the next ticket if no place runs."""
        if self._permits and not self._busy and self._granted is None:
            self._granted, self._granted_s = self._permits.popleft(), self._waited_s
            self._granted_looks = 0
            self._granted.opened.release()

    def _unstick(self) -> None:
        for place, (used_ns, _) in list(self._stuck.items()):
            if threads.processor_time_ns(place) > used_ns:
                del self._stuck[place]
                self._busy.add(place)

    def _moves(self, place: int) -> None:
        """A place has called the ledger, so it is not stuck."""
        if place in self._computing or place in self._stuck:
            self._computing.discard(place)
            self._stuck.pop(place, None)
            self._busy.add(place)
        watched = self._watched.get(place)
        if watched is not None:
            watched.since_s = None

    def reserve(self) -> Ticket:
        """A ticket for a thread that is about to begin."""
        ticket = Ticket()
        self.put(ticket)
        return ticket

    def put(self, ticket: Ticket) -> None:
        """Append ``ticket`` to the queue."""
        with self._lock:
            self._permits.append(ticket)
            self._grant()

    def give_up(self, ticket: Ticket) -> None:
        """Withdraw ``ticket``: no thread will claim it."""
        with self._lock:
            if self._granted is ticket:
                self._granted = None
            elif ticket in self._permits:
                self._permits.remove(ticket)
            self._grant()

    def claim(self, ticket: Ticket) -> None:
        """Block until ``ticket`` has the permit, then mark this thread as busy."""
        if not ticket.opened.acquire(blocking=False):
            while not self._closed and not ticket.opened.acquire(timeout=self._look_s(ticket)):
                self.overdue()
        place = get_ident()
        with self._lock:
            if self._granted is ticket:
                self._granted = None
            if self._reserved.get(place) is ticket:  # until now: other wake-ups have no effect
                del self._reserved[place]
            self._idle.pop(place, None)
            self._selecting.discard(place)
            self._busy.add(place)

    def _look_s(self, ticket: Ticket) -> float:
        """Seconds between checks for stuck threads; the first in the queue checks more often."""
        return self._hold_s / 10 if self._permits and self._permits[0] is ticket else self._hold_s

    def wake(self, place: int) -> None:
        """Wake a waiting place: it gets a ticket behind those that were woken earlier."""
        with self._lock:
            if place in self._interrupted:
                self._interrupted[place] = True
            if place in self._idle and place not in self._away and place not in self._reserved:
                self._reserved[place] = self.reserve()

    def waits(self, until: float | None = None) -> None:
        """This thread waits; ``until``: time at which it continues by itself."""
        self._rests(get_ident(), until)

    def lets_go(self, release: Callable[[], T]) -> T:
        """Release a lock and wait, atomically: the next thread sees both."""
        with self._lock:
            released = release()
            self.waits()
        return released

    def selecting(self, until: float | None, *, spins: bool = False) -> None:
        """This thread's event loop is idle until then; ``spins``: it is busy but counts as idle."""
        self._rests(get_ident(), until, selects=not spins)

    def leaves(self) -> None:
        """This thread waits for the outside world."""
        self._rests(get_ident(), None, leaves=True)

    def _rests(
        self, place: int, until: float | None, *, selects: bool = False, leaves: bool = False
    ) -> None:
        with self._lock:
            if place in self._away:
                return
            self._moves(place)
            if place not in self._busy and place not in self._idle:
                return
            self._busy.discard(place)
            self._idle[place] = until
            if selects:
                self._selecting.add(place)
            else:  # a callback of its loop waits, which uvloop calls without a word
                self._selecting.discard(place)
            if leaves:
                self._away.add(place)
            self._grant()
        self._changed()

    def returns(self) -> None:
        """This thread got what it waited for and is about to wait at the gate."""
        with self._lock:
            self._away.discard(get_ident())

    def calls_back(self, place: int) -> None:
        """This thread has ended a place's wait for the outside world."""
        with self._lock:
            if place in self._away:
                self._away.discard(place)
                self.wake(place)

    def goes_on(self) -> None:
        """Block until this thread has the permit again."""
        place = get_ident()
        with self._lock:
            if place in self._away:
                return
            self._moves(place)
            self._selecting.discard(place)
            if place not in self._idle:
                return
            ticket = self._reserved.get(place)
            if ticket is None:
                ticket = self._reserved[place] = self.reserve()
        self.claim(ticket)

    @contextlib.contextmanager
    def certain(self) -> Generator[None]:
        """Context in which this thread keeps its permit while it blocks in what ends by itself."""
        place = get_ident()
        with self._lock:
            self._certain.add(place)
        try:
            yield
        finally:
            with self._lock:
                self._certain.discard(place)

    def is_certain(self) -> bool:
        """Whether this thread is inside `certain`."""
        return get_ident() in self._certain

    @contextlib.contextmanager
    def interrupted(self) -> Generator[None]:
        """Context in which this thread runs the handler of a signal in the middle of a wait.

        It has the permit in it, and waits again afterwards, unless the handler has raised something.
        """
        place = get_ident()
        with self._lock:
            until = self._idle.get(place)
            waits, selects, away = (place in one for one in (self._idle, self._selecting, self._away))
            self._away.discard(place)
            if waits:
                self._interrupted[place] = False
        if not waits:
            yield
            return
        try:
            self.goes_on()
            yield
        except BaseException:
            self._interrupted.pop(place, None)
            raise
        with self._lock:
            if self._interrupted.pop(place, False):  # the handler has ended the wait
                self._reserved[place] = self.reserve()
            self._rests(place, until, selects=selects, leaves=away)

    def is_held(self) -> bool:
        """Whether this thread holds the lock, so that it must not block."""
        return self._lock._is_owned()

    def when_free(self, call: Callable[[], object]) -> None:
        """Call ``call`` with the lock: no other thread holds it then."""
        with self._lock:
            call()

    def begins(self, ticket: Ticket | None) -> None:
        """This thread begins. Without a ticket it is a worker that waits for a job."""
        if ticket is not None:
            self.claim(ticket)
            return
        with self._lock:
            self._idle[get_ident()] = None

    def ends(self, thread: threading.Thread) -> None:
        """This thread ends."""
        place = get_ident()
        with self._lock:
            self._ended.add(thread)
            self._busy.discard(place)
            self._lost = {lost for lost in self._lost if lost[0] != place}
            for places in (self._selecting, self._away, self._computing):
                places.discard(place)
            for kept in (self._idle, self._stuck, self._watched, self._loops):
                kept.pop(place, None)
            stale = self._reserved.pop(place, None)
            if stale is not None:
                self.give_up(stale)
            for joining, lock in self._joining.pop(thread, {}).items():
                self.wake(joining)
                if lock is not None:
                    with contextlib.suppress(RuntimeError):  # released already: its permit has come
                        lock.release()
            self._grant()
        self._changed()

    def has_ended(self, thread: threading.Thread) -> bool:
        """Whether a thread has had its last permit. A moment later it has ended for the system, too."""
        return thread in self._ended

    def joins(self, thread: threading.Thread, until: float | None = None, lock: Any = None) -> None:
        """This thread joins another one, whose end releases ``lock``."""
        place = get_ident()
        with self._lock:
            over = thread in self._ended
            if not over:
                self._joining.setdefault(thread, {})[place] = lock
            elif lock is not None:
                lock.release()
        if not over:
            self.waits(until)

    def joined(self, thread: threading.Thread) -> None:
        """The join of this thread has ended."""
        with self._lock:
            self._joining.get(thread, {}).pop(get_ident(), None)
        self.goes_on()

    def runs_loop(self, loop: Any, ready: Callable[[], bool]) -> None:
        """This thread runs an event loop. ``ready``: tells whether it has work."""
        with self._lock:
            self._loops[get_ident()] = loop, ready

    def stops_loop(self) -> None:
        """This thread's event loop has stopped."""
        with self._lock:
            self._loops.pop(get_ident(), None)

    def wakes_loop(self, loop: Any) -> None:
        """Another thread has scheduled work on an event loop."""
        with self._lock:
            for place in self._selecting:
                if place in self._loops and self._loops[place][0] is loop:
                    self.wake(place)

    def comes(self, place: int) -> bool:
        """Whether a woken place will run soon, that is, is neither stuck nor away."""
        with self._lock:
            return not any(place in places for places in (self._stuck, self._computing, self._away))

    def selects(self, place: int) -> bool:
        """Whether the event loop of a place is idle."""
        with self._lock:
            return place in self._selecting

    def close(self) -> None:
        """Stop scheduling: all threads run freely."""
        with self._lock:
            self._closed = True
            self._permits.clear()
            self._granted = None

    def after_fork(self) -> None:
        """In the child of a fork: only this thread exists."""
        self._lock._at_fork_reinit()
        with self._lock:
            for kept in (self._idle, self._stuck, self._watched, self._loops, self._reserved):
                kept.clear()
            self._permits.clear()
            self._joining.clear()
            self._ended.clear()
            for places in (self._selecting, self._away, self._certain, self._computing, self._lost):
                places.clear()
            self._interrupted.clear()
            self._busy = {get_ident()}
            self._granted = None
            self._forked()

    def _ready(self) -> bool:
        return any(
            self._loops[place][1]()
            for place in self._selecting
            if place in self._loops and place not in self._reserved
        )


def _ignore(place: int, how: str) -> None:
    """No-op callback."""
