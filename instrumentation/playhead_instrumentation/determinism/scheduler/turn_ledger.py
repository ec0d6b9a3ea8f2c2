"""Who runs and who waits: whether all consequences of a delivery have happened.

Every thread of the program is a place, busy from its start to its end but for the times in which it
waits: at the gate, in a condition, a join, a sleep, in its event loop, for the next job of an executor,
or, *away*, for the world outside. One place runs at a time; who is woken gets a *ticket* at that moment,
and runs when it is the turn of that. All is quiet when nobody is busy and no ticket is out. Who is stuck
(`stuck`) loses its turn: who blocks in something unknown until it goes on, who computes until it
tells of itself.
"""

from __future__ import annotations

import _thread
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Literal, TypeAlias, TypeVar

from playhead_instrumentation.determinism.scheduler import processor_time, stuck
from playhead_instrumentation.determinism.scheduler.stuck import Watched
from playhead_instrumentation.runtime.real_clock import REAL

T = TypeVar("T")

Rest: TypeAlias = Literal["waits", "runs"]

GRANTED_HOLD_S = 0.5
"""Who has the turn and does not begin to run for so long is taken not to come."""

GUESS_S = 5.0
"""Who has used no processor time for so long does wait."""

CERTAIN_HOLD_S = 5.0
"""Who goes on by itself is waited for so long."""

LOOKS = 20
"""So often it is looked again whether who has the turn, or whom it waits for, could run."""


class Ticket:
    """A place in the order of those who may run."""

    __slots__ = ("opened",)

    def __init__(self) -> None:
        self.opened = _thread.allocate_lock()
        self.opened.acquire()


class Quiet:
    """The books, and the turns: one place runs at a time, in the order in which they were woken.

    Every method takes the gate's lock, which is reentrant; `goes_on`, `begins` and `claim` may wait, and
    are called without it.
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
        """``changed``: called, without the lock, when somebody began to wait. ``forked``: in a child.

        ``hold_s``: so long a place that runs without using processor time holds up the others, less
        each time, but not less than a fourth; ``computing_hold_s``: so much of it one uses that does.
        """
        self._lock = lock
        self._changed = changed
        self._forked = forked
        self._hold_s = hold_s
        self._computing_hold_s = computing_hold_s
        self._granted_hold_s = max(GRANTED_HOLD_S, 4 * hold_s)
        self._closed = False
        self._busy: set[int] = {threading.get_ident()}
        self._idle: dict[int, float | None] = {}
        """Place → when it goes on by itself (`REAL.now_s`); None: when somebody wakes it."""
        self._turns: deque[Ticket] = deque()
        self._granted: Ticket | None = None
        """Of whom it is the turn, and who has not begun to run yet."""
        self._granted_s = 0.0
        self._granted_looks = 0
        self._waited_s = 0.0
        self._polled_s = REAL.now_s()
        self._reserved: dict[int, Ticket] = {}
        """Tickets of places that were woken."""
        self._joining: dict[threading.Thread, dict[int, Any]] = {}
        """Who waits for the end of a thread, and the lock at which it does."""
        self._ended: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        self._loops: dict[int, tuple[Any, Callable[[], bool]]] = {}
        self._selecting: set[int] = set()
        """Places whose event loop is idle."""
        self._away: set[int] = set()
        """Places that wait for the world outside, whatever else they do meanwhile."""
        self._certain: set[int] = set()
        """Busy places that block in what ends by itself."""
        self._watched: dict[int, Watched] = {}
        """Busy places that hold up others."""
        self._stuck: dict[int, tuple[int, float]] = {}
        """Places that block → processor time (ns) beyond which they have gone on, and since when (s)."""
        self._computing: set[int] = set()
        """Places that compute for too long."""
        self.on_lost: Callable[[int, str], None] = _nobody
        """Told of the place that lost its turn, and how. Called with the lock."""
        self._lost: set[tuple[int, str]] = set()

    def holds(self, hold_s: float, computing_hold_s: float) -> None:
        """From now on those who are busy are waited for so long."""
        with self._lock:
            self._hold_s, self._computing_hold_s = hold_s, computing_hold_s

    def quiet(self) -> bool:
        """Whether nothing happens until the gate lets somebody through, or time passes."""
        with self._lock:
            if self._stuck:
                self._unstick()
            return not self._busy and self._nobody_next()

    def alone(self) -> bool:
        """Whether all is quiet but for this thread."""
        with self._lock:
            if self._stuck:
                self._unstick()
            others = len(self._busy) - (threading.get_ident() in self._busy)
            return not others and self._nobody_next()

    def _nobody_next(self) -> bool:
        return self._granted is None and not self._turns and not self._ready()

    def for_good(self) -> bool:
        """Whether it stays quiet however much time passes."""
        with self._lock:
            return self.quiet() and all(until is None for until in self._idle.values())

    def guesses(self) -> bool:
        """Whether somebody is taken to wait only because it uses no processor time, not for long yet."""
        with self._lock:
            recently = REAL.now_s() - GUESS_S
            return any(since_s > recently for _, since_s in self._stuck.values())

    def rest(self) -> Rest | None:
        """``waits``: all do, until somebody wakes them; ``runs``: who does not wait may run, or block.

        None: somebody goes on by itself. Changes nothing.
        """
        with self._lock:
            if self._ready() or any(until is not None for until in self._idle.values()):
                return None
            runs = self._busy or self._stuck or self._computing or self._turns or self._granted
            return "runs" if runs else "waits"

    def computes(self) -> bool:
        """Whether somebody is not waited for because it computes."""
        with self._lock:
            return bool(self._computing)

    def latest_alarm(self) -> float:
        """When the last of those who sleep goes on (`REAL.now_s`); 0: nobody does."""
        with self._lock:
            return max((until for until in self._idle.values() if until is not None), default=0.0)

    def overdue(self) -> bool:
        """Whether all is quiet but for those who are stuck; they are waited for no more."""
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
                    self._stuck[place] = processor_time.used_ns(place) + rests_ns, REAL.now_s()
            if self._granted is not None and now - self._granted_s >= self._granted_hold_s:
                if self._granted_looks < LOOKS and processor_time.others_could_run(self._computing):
                    self._granted_looks += 1
                    self._granted_s = now - self._granted_hold_s / 2
                else:
                    self._granted = None
            self._grant()
            return not self._busy and self._granted is None and not self._turns

    def _loses(self, place: int, how: str) -> None:
        if (place, how) not in self._lost:
            self._lost.add((place, how))
            self.on_lost(place, how)

    def patience_s(self) -> float:
        """Time (s) as those who wait have spent it: who is not let run has not waited."""
        with self._lock:
            now = REAL.now_s()
            self._waited_s += min(now - self._polled_s, self._hold_s / 5)
            self._polled_s = now
            return self._waited_s

    def _grant(self) -> None:
        """Whoever is next runs, if nobody does."""
        if self._turns and not self._busy and self._granted is None:
            self._granted, self._granted_s = self._turns.popleft(), self._waited_s
            self._granted_looks = 0
            self._granted.opened.release()

    def _unstick(self) -> None:
        for place, (used_ns, _) in list(self._stuck.items()):
            if processor_time.used_ns(place) > used_ns:
                del self._stuck[place]
                self._busy.add(place)

    def _moves(self, place: int) -> None:
        """A place tells of itself."""
        if place in self._computing or place in self._stuck:
            self._computing.discard(place)
            self._stuck.pop(place, None)
            self._busy.add(place)
        watched = self._watched.get(place)
        if watched is not None:
            watched.since_s = None

    def reserve(self) -> Ticket:
        """A turn for somebody who is about to begin."""
        ticket = Ticket()
        self.put(ticket)
        return ticket

    def put(self, ticket: Ticket) -> None:
        """Put ``ticket`` at the end of the line."""
        with self._lock:
            self._turns.append(ticket)
            self._grant()

    def give_up(self, ticket: Ticket) -> None:
        """Nobody comes with ``ticket``."""
        with self._lock:
            if self._granted is ticket:
                self._granted = None
            elif ticket in self._turns:
                self._turns.remove(ticket)
            self._grant()

    def claim(self, ticket: Ticket) -> None:
        """Wait for the turn of ``ticket``, then run."""
        if not ticket.opened.acquire(blocking=False):
            while not self._closed and not ticket.opened.acquire(timeout=self._look_s(ticket)):
                self.overdue()
        place = threading.get_ident()
        with self._lock:
            if self._granted is ticket:
                self._granted = None
            if self._reserved.get(place) is ticket:  # until now: who wakes it meanwhile does so in vain
                del self._reserved[place]
            self._idle.pop(place, None)
            self._selecting.discard(place)
            self._busy.add(place)

    def _look_s(self, ticket: Ticket) -> float:
        """How often who holds ``ticket`` looks whether others are stuck: who is next, for all."""
        return self._hold_s / 10 if self._turns and self._turns[0] is ticket else self._hold_s

    def wake(self, place: int) -> None:
        """A place that waits is woken: it runs when those have run who were woken before."""
        with self._lock:
            if place in self._idle and place not in self._away and place not in self._reserved:
                self._reserved[place] = self.reserve()

    def waits(self, until: float | None = None) -> None:
        """This thread waits; ``until``: it goes on by itself then."""
        self._rests(threading.get_ident(), until)

    def lets_go(self, release: Callable[[], T]) -> T:
        """This thread lets go of a lock and waits: who runs next finds both done."""
        with self._lock:
            released = release()
            self.waits()
        return released

    def selecting(self, until: float | None, *, spins: bool = False) -> None:
        """The event loop of this thread is idle until then, or ``spins``: it never is."""
        self._rests(threading.get_ident(), until, selects=not spins)

    def leaves(self) -> None:
        """This thread waits for the world outside."""
        self._rests(threading.get_ident(), None, leaves=True)

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
            if leaves:
                self._away.add(place)
            self._grant()
        self._changed()

    def returns(self) -> None:
        """It has what it waited for, and is about to wait at the gate."""
        with self._lock:
            self._away.discard(threading.get_ident())

    def calls_back(self, place: int) -> None:
        """A place waits for the world outside no longer: this thread has seen to that."""
        with self._lock:
            if place in self._away:
                self._away.discard(place)
                self.wake(place)

    def goes_on(self) -> None:
        """This thread runs again, when it is its turn."""
        place = threading.get_ident()
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
        """This thread blocks, with its turn, in what ends by itself."""
        place = threading.get_ident()
        with self._lock:
            self._certain.add(place)
        try:
            yield
        finally:
            with self._lock:
                self._certain.discard(place)

    def is_certain(self) -> bool:
        """Whether this thread blocks in what ends by itself."""
        return threading.get_ident() in self._certain

    def begins(self, ticket: Ticket | None) -> None:
        """This thread begins; without a ticket it waits for work."""
        if ticket is not None:
            self.claim(ticket)
            return
        with self._lock:
            self._idle[threading.get_ident()] = None

    def ends(self, thread: threading.Thread) -> None:
        """This thread ends."""
        place = threading.get_ident()
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
                    with contextlib.suppress(RuntimeError):  # its turn has come meanwhile
                        lock.release()
            self._grant()
        self._changed()

    def joins(self, thread: threading.Thread, until: float | None = None, lock: Any = None) -> None:
        """This thread waits for the end of another, which is told by a release of ``lock``."""
        place = threading.get_ident()
        with self._lock:
            over = thread in self._ended
            if not over:
                self._joining.setdefault(thread, {})[place] = lock
            elif lock is not None:
                lock.release()
        if not over:
            self.waits(until)

    def joined(self, thread: threading.Thread) -> None:
        """It waits no longer."""
        with self._lock:
            self._joining.get(thread, {}).pop(threading.get_ident(), None)
        self.goes_on()

    def runs_loop(self, loop: Any, ready: Callable[[], bool]) -> None:
        """This thread runs an event loop. ``ready``: whether it has something to do."""
        with self._lock:
            self._loops[threading.get_ident()] = loop, ready

    def stops_loop(self) -> None:
        """It does not run any more."""
        with self._lock:
            self._loops.pop(threading.get_ident(), None)

    def wakes_loop(self, loop: Any) -> None:
        """Another thread has given an event loop something to do."""
        with self._lock:
            for place in self._selecting:
                if place in self._loops and self._loops[place][0] is loop:
                    self.wake(place)

    def comes(self, place: int) -> bool:
        """Whether a place that was woken runs soon: it does not block in something unknown."""
        with self._lock:
            return not any(place in places for places in (self._stuck, self._computing, self._away))

    def selects(self, place: int) -> bool:
        """Whether the event loop of a place is idle."""
        with self._lock:
            return place in self._selecting

    def close(self) -> None:
        """Everybody runs."""
        with self._lock:
            self._closed = True
            self._turns.clear()
            self._granted = None

    def after_fork(self) -> None:
        """Only this thread is left."""
        self._lock._at_fork_reinit()
        with self._lock:
            for kept in (self._idle, self._stuck, self._watched, self._loops, self._reserved):
                kept.clear()
            self._turns.clear()
            self._joining.clear()
            self._ended.clear()
            for places in (self._selecting, self._away, self._certain, self._computing, self._lost):
                places.clear()
            self._busy = {threading.get_ident()}
            self._granted = None
            self._forked()

    def _ready(self) -> bool:
        return any(
            self._loops[place][1]()
            for place in self._selecting
            if place in self._loops and place not in self._reserved
        )


def _nobody(place: int, how: str) -> None:
    """Nobody wants to know."""
