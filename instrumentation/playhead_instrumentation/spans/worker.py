"""The background thread that ends spans.

The caller's path hands over a reference and goes on; parsing bodies and ending the span happens here.
To wake a thread costs the caller more than all the rest, so the thread looks by itself as long as work
comes up again and again. When none does it sleeps, and the next one who hands over wakes it.
When it is not there (after fork, while the interpreter goes down) the work is done inline.
"""

from __future__ import annotations

import logging
import weakref
from collections import deque
from typing import Protocol

from playhead_instrumentation.runtime import at_fork
from playhead_instrumentation.runtime.own_waits import apart
from playhead_semconv.process.interpreter_threads import Bell, Changes, Thread, get_ident, make_lock

log = logging.getLogger(__name__)

PAUSE_S = 0.02
"""How soon the thread looks again."""
LOOKS = 10
"""How often it looks in vain before it sleeps."""


class Job(Protocol):
    """Something to be finished, once. What it raises is logged."""

    def finish(self) -> None:
        """Do it."""
        ...


class _Mark:
    """A job that tells when everything before it is done."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self.reached = False

    def finish(self) -> None:
        self.reached = True
        self._changes.tell()


class _Waking:
    """What the thread and its worker share; the thread does not keep the worker alive."""

    def __init__(self) -> None:
        self.bell = Bell()
        self.changes = Changes()
        self.sleeps = False
        """Whether the thread must be woken."""
        self.hurries = False
        """Whether somebody waits for it."""

    def hurry(self, _: object = None) -> None:
        """Have it look at once."""
        self.hurries = True
        self.bell.ring()


class Worker:
    """Finishes jobs in order, one at a time, in a thread that ends with it."""

    def __init__(self) -> None:
        self._start_afresh()
        at_fork.in_child(self._start_afresh)

    def _start_afresh(self) -> None:
        # What the parent had handed over is the parent's to finish.
        self._jobs: deque[Job] = deque()
        self._waking = _Waking()
        self._thread: Thread | None = None
        self._runs_in = 0
        self._starting = make_lock()
        self._inline_only = False

    def submit(self, job: Job) -> None:
        """Hand over. Never raises, never waits for a lock: safe from a finalizer."""
        self._jobs.append(job)
        if self._thread is None or self._inline_only:
            self.run_inline()
        elif self._waking.sleeps:
            self._waking.sleeps = False
            self._waking.bell.ring()

    def start(self) -> None:
        """Start the thread, where there is none yet. Called before work comes up, on a plain stack."""
        if self._thread is not None or self._inline_only or not self._starting.acquire(blocking=False):
            return
        try:
            if self._thread is None:
                waking = self._waking
                reference: weakref.ref[Worker] = weakref.ref(self, waking.hurry)
                thread = Thread("playhead-spans", lambda: _run(reference, waking))
                thread.start()
                self._thread = thread
        except RuntimeError:
            # The interpreter is going down: no thread can be started any more.
            self._inline_only = True
        finally:
            self._starting.release()

    def drain(self, timeout_s: float) -> bool:
        """Wait until all that was handed over is finished; False when ``timeout_s`` was not enough.

        The wait is ours, not the program's: it is not on the tape, and a replay waits for real.
        """
        with apart():
            return self._drain(timeout_s)

    def _drain(self, timeout_s: float) -> bool:
        thread, waking = self._thread, self._waking
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
        """From now on work in the thread that hands over: the process is about to end."""
        self._inline_only = True
        self.run_inline()

    def run_inline(self) -> int:
        """Finish what there is; how much it was."""
        count = 0
        while True:
            try:
                job = self._jobs.popleft()
            except IndexError:
                return count
            count += 1
            _finish(job)

    def run_here(self) -> int:
        """The same, in its own thread."""
        self._runs_in = get_ident()
        return self.run_inline()

    def idle(self) -> bool:
        """Whether nothing waits to be finished."""
        return not self._jobs


def _run(reference: weakref.ref[Worker], waking: _Waking) -> None:
    """Finish what comes, as long as the worker is there."""
    looks = 0
    while True:
        if looks >= LOOKS and _may_sleep(reference, waking):
            waking.bell.wait()
            looks = 0
        # Who woke us goes on first.
        if not waking.hurries:
            waking.bell.wait(PAUSE_S)
        waking.hurries = False
        worker = reference()
        if worker is None:
            return
        looks = 0 if worker.run_here() else looks + 1
        del worker


def _may_sleep(reference: weakref.ref[Worker], waking: _Waking) -> bool:
    """Whether nothing came since it was said that the thread must be woken."""
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
