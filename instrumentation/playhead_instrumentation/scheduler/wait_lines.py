"""Queues of threads that wait for a lock or a queue; and which callers get the replaced types.

The idea: a thread that has to wait for a lock gives up its permit at once and joins the line of the
lock. A release wakes the first thread in line, so permits are granted in the order of releases, and the
thread takes the real lock only when it has its permit.

The invariant: a thread with the permit never waits for a thread without it, and a thread takes a lock
only while it runs. With the real locks both would fail. The permit holder could block on a lock whose
owner waits for the permit (a deadlock until the scheduler takes the permit away), and the operating
system would choose who gets a released lock, which differs from run to run.
"""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Callable

from playhead_instrumentation.patching.lanes import UNRECORDED, current
from playhead_instrumentation.scheduler import timer_ends
from playhead_instrumentation.scheduler.ledger import ThreadLedger

REAL_OF = ("concurrent", "importlib", "logging", "opentelemetry")
"""Packages that get the real types, like playhead's own. Jobs of `concurrent.futures` have permits."""

_ledger: ThreadLedger | None = None
_forks = 0


def keep(ledger: ThreadLedger | None) -> None:
    """Set the ledger; None: there is none."""
    global _ledger
    _ledger = ledger


def wanted(depth: int) -> bool:
    """Whether the caller ``depth`` frames above ours gets the replaced type."""
    if _ledger is None:
        return False
    try:
        frame = sys._getframe(depth + 1)  # pyright: ignore[reportPrivateUsage]
    except ValueError:  # the interpreter itself calls, as a callback
        return False
    while (module := frame.f_globals.get("__name__", "")) == "threading" and frame.f_back is not None:
        frame = frame.f_back
    root = module.partition(".")[0]
    return root not in REAL_OF and not root.startswith("playhead_")


class Waiter:
    """A thread that waits in a queue."""

    __slots__ = ("_fork", "_opened", "_permit", "_place", "_wake")

    def __init__(self, timeout: float | None, kind: str) -> None:
        """``timeout``: seconds; ``kind``: kind of the fact if the timeout ends the wait."""
        self._place = _thread.get_ident()
        self._opened = _thread.allocate_lock()
        self._opened.acquire()
        self._wake, self._permit = None, None
        if timeout is not None and _ledger is not None:
            self._wake = timer_ends.opened_in_order(kind, timeout)
            self._permit = None if self._wake is None else self._wake.ahead()
            if self._permit is not None:
                self._opened = self._permit.opened
        self._fork = _forks

    @property
    def gone(self) -> bool:
        """Whether the waiter belongs to the parent of this process (after a fork)."""
        return self._fork != _forks

    def wake(self) -> None:
        """Wake the thread to try again. Idempotent and safe in a finalizer."""
        ledger = _ledger
        if ledger is not None:
            ledger.wake(self._place)
        try:
            self._opened.release()
        except RuntimeError:
            return  # already awake

    def wait(self, until: float | None) -> bool:
        """Block until woken; False if not woken before ``until`` (`time.monotonic`)."""
        # In the unrecorded lane the holder of such a lock has no permit and needs none to release it.
        ledger = None if current() is UNRECORDED else _ledger
        wake, permit = self._wake, self._permit
        left_s = -1 if until is None else max(0.0, until - time.monotonic())
        if wake is not None and permit is not None:
            wake.waits(permit, left_s)
        try:
            # Inside the block: as soon as the thread counts as waiting, a signal handler may raise.
            if ledger is not None:
                ledger.waits(until if permit is None else None)
            if wake is not None and permit is not None:
                return not wake.comes_first(permit)
            return self._opened.acquire(timeout=left_s)
        finally:
            if ledger is not None:
                ledger.goes_on()

    def ended(self, taken: bool) -> None:
        """The wait has ended; ``taken``: not by the timeout."""
        if self._wake is not None and self._permit is not None:
            self._wake.ended(self._permit, taken)


def wait_in(
    line: list[Waiter], take: Callable[[], bool], timeout: float | None, kind: str = "lock"
) -> bool:
    """Wait in ``line`` until ``take`` succeeds, tried when first in line; False after ``timeout`` (s).

    ``kind``: kind of the fact if the timeout ends the wait.
    """
    until = None if timeout is None else time.monotonic() + timeout
    if line and line[0].gone:
        line[:] = [other for other in line if not other.gone]
    waiter = Waiter(timeout, kind)
    line.append(waiter)
    taken = False
    try:
        in_time = True
        while not taken:
            taken = (line[0] is waiter or not in_time) and take()
            if not taken and not in_time:
                break
            in_time = taken or waiter.wait(until)
    finally:
        line.remove(waiter)
        if not taken:
            wake_first(line)
    waiter.ended(taken)
    return taken


def wake_first(line: list[Waiter]) -> None:
    """Wake the first waiter, if there is one."""
    try:
        first = line[0]
    except IndexError:
        return
    first.wake()


def _forked() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
