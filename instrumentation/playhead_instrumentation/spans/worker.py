"""The background thread that ends spans.

The caller's path hands over a reference and goes on; parsing bodies and ending the span happens here.
Handing over wakes nobody, which costs the caller more than all the rest: the thread looks by itself.
When it is not there (after fork, while the interpreter goes down) the work is done inline.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import deque
from typing import Protocol

from playhead_instrumentation import at_fork
from playhead_instrumentation.apart import apart

log = logging.getLogger(__name__)

BUSY_S = 0.02
"""How soon the thread looks again when there was work."""
IDLE_S = 0.1
"""And when there was none."""


class Job(Protocol):
    """Something to be finished, once. What it raises is logged."""

    def finish(self) -> None:
        """Do it."""
        ...


class _Mark:
    """A job that tells when everything before it is done."""

    def __init__(self) -> None:
        self.reached = threading.Event()

    def finish(self) -> None:
        self.reached.set()


class Worker:
    """Finishes jobs in order, one at a time, in a thread that ends with it."""

    def __init__(self) -> None:
        self._start_afresh()
        at_fork.in_child(self._start_afresh)

    def _start_afresh(self) -> None:
        # What the parent had handed over is the parent's to finish.
        self._jobs: deque[Job] = deque()
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._inline_only = False

    def submit(self, job: Job) -> None:
        """Hand over. Never raises, never waits for a lock: safe from a finalizer."""
        self._jobs.append(job)
        if self._thread is None or self._inline_only:
            self.run_inline()

    def start(self) -> None:
        """Start the thread, where there is none yet. Called before work comes up, on a plain stack."""
        if self._thread is not None or self._inline_only or not self._starting.acquire(blocking=False):
            return
        try:
            if self._thread is None:
                thread = threading.Thread(
                    target=_run,
                    args=(weakref.ref(self), self._hurry),
                    name="playhead-spans",
                    daemon=True,
                )
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
        thread = self._thread
        if thread is None or not thread.is_alive() or thread is threading.current_thread():
            self.run_inline()
            return True
        mark = _Mark()
        self._jobs.append(mark)
        self._hurry.set()
        deadline = time.monotonic() + timeout_s
        while not mark.reached.wait(min(0.05, max(0.0, deadline - time.monotonic()))):
            if not thread.is_alive():
                self.run_inline()
                return True
            if time.monotonic() >= deadline:
                return False
        return True

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


def _run(reference: weakref.ref[Worker], hurry: threading.Event) -> None:
    """Finish what comes, as long as the worker is there."""
    pause_s = IDLE_S
    while True:
        hurry.wait(pause_s)
        hurry.clear()
        worker = reference()
        if worker is None:
            return
        pause_s = BUSY_S if worker.run_inline() else IDLE_S
        del worker


def _finish(job: Job) -> None:
    try:
        job.finish()
    except Exception:
        log.warning("playhead could not finish a span", exc_info=True)
