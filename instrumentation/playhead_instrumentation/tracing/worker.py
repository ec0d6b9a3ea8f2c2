"""The background thread that ends spans.

The caller's path only hands over a reference. Parsing bodies and ending the span happens here. A wake-up
of a thread costs the caller more than everything else, so the thread polls as long as work keeps
arriving. When there is none it sleeps, and the next hand-over wakes it. When there is no thread (after
fork, during interpreter shutdown), the work is done inline.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Protocol

from playhead_core.process.interpreter_threads import Bell, Thread, Waiters, get_ident, make_lock
from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching import at_fork
from playhead_instrumentation.patching.lanes import own_wait

log = Log(__name__)

PAUSE_S = 0.1
"""Seconds between two polls. What ends meanwhile is finished in one go, so that the program is seldom
interrupted."""
LOOKS = 10
"""Polls without work before the thread sleeps."""


class Job(Protocol):
    """Something to be finished once. What it raises is logged."""

    def finish(self) -> None:
        """Do the work."""
        ...


class _Mark:
    """A job that signals when all jobs before it are done."""

    def __init__(self, changes: Waiters) -> None:
        self._changes = changes
        self.reached = False

    def finish(self) -> None:
        self.reached = True
        self._changes.tell()


class _Waking:
    """State that the thread shares with its worker; the thread holds no reference to the worker."""

    def __init__(self) -> None:
        self.bell = Bell()
        self.changes = Waiters()
        self.sleeps = False
        """Whether the thread must be woken."""
        self.hurries = False
        """Whether a caller waits for the thread."""

    def hurry(self, _: object = None) -> None:
        """Make the thread look for work at once."""
        self.hurries = True
        self.bell.ring()


class Worker:
    """Finishes jobs in order, one at a time, in a thread that ends when the worker is collected."""

    def __init__(self) -> None:
        self._start_afresh()
        at_fork.in_child(self._start_afresh)

    def _start_afresh(self) -> None:
        # Jobs that the parent had queued are finished by the parent.
        self._jobs: deque[Job] = deque()
        self._waking = _Waking()
        self.thread: Thread | None = None
        """The thread, once it is started."""
        self._runs_in = 0
        self._starting = make_lock()
        self._inline_only = False

    def submit(self, job: Job) -> None:
        """Queue a job. Never raises and never waits for a lock: safe from a finalizer."""
        self._jobs.append(job)
        if self.thread is None or self._inline_only:
            self.run_inline()
        elif self._waking.sleeps:
            self._waking.sleeps = False
            self._waking.bell.ring()

    def start(self) -> None:
        """Start the thread if there is none. Called before there is work, outside of finalizers."""
        if self.thread is not None or self._inline_only or not self._starting.acquire(blocking=False):
            return
        try:
            if self.thread is None:
                waking = self._waking
                reference: weakref.ref[Worker] = weakref.ref(self, waking.hurry)
                thread = Thread("playhead-spans", lambda: _run(reference, waking))
                thread.start()
                self.thread = thread
        except RuntimeError:
            # The interpreter is shutting down: no thread can be started any more.
            self._inline_only = True
        finally:
            self._starting.release()

    def drain(self, timeout_s: float) -> bool:
        """Wait until all queued jobs are finished; False when ``timeout_s`` was not enough.

        This wait is not part of the program: it is not on the tape, and a replay waits for real.
        """
        with own_wait():
            return self._drain(timeout_s)

    def _drain(self, timeout_s: float) -> bool:
        thread, waking = self.thread, self._waking
        if thread is None or not thread.is_alive() or self._runs_in == get_ident():
            self.run_inline()
            return True
        mark = _Mark(waking.changes)
        self._jobs.append(mark)
        waking.hurry()
        waking.changes.wait_for(lambda: mark.reached or not thread.is_alive(), timeout_s)
        if not mark.reached and not thread.is_alive():
            self.run_inline()
        return mark.reached

    def finish_inline(self) -> None:
        """From now on finish jobs in the thread that submits them: the process is about to end."""
        self._inline_only = True
        self.run_inline()

    def run_inline(self) -> int:
        """Finish all queued jobs; returns how many."""
        count = 0
        while True:
            try:
                job = self._jobs.popleft()
            except IndexError:
                return count
            count += 1
            _finish(job)

    def run_here(self) -> int:
        """As `run_inline`, called by the worker's own thread."""
        self._runs_in = get_ident()
        return self.run_inline()

    def idle(self) -> bool:
        """Whether the queue is empty."""
        return not self._jobs


def _run(reference: weakref.ref[Worker], waking: _Waking) -> None:
    """Finish jobs as they arrive, until the worker is collected."""
    looks = 0
    while True:
        if looks >= LOOKS and _may_sleep(reference, waking):
            waking.bell.wait()
            looks = 0
        # After a wake-up, let the thread that woke us run first.
        if not waking.hurries:
            waking.bell.wait(PAUSE_S)
        waking.hurries = False
        worker = reference()
        if worker is None:
            return
        looks = 0 if worker.run_here() else looks + 1
        del worker


def _may_sleep(reference: weakref.ref[Worker], waking: _Waking) -> bool:
    """Whether the queue is still empty after ``sleeps`` was set, so that no wake-up can be lost."""
    waking.sleeps = True
    worker = reference()
    if worker is not None and worker.idle() and not waking.hurries:
        return True
    waking.sleeps = False
    return False


def _finish(job: Job) -> None:
    try:
        job.finish()
    except Exception:
        log.warning("playhead could not finish a span", exc_info=True)
