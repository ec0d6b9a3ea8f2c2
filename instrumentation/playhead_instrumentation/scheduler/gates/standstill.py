"""Detects that a replay stands still, records that, and ends the process.

A thread that waits at the gate checks whether all threads are stuck, and the gate then lets one in. If
every thread of the program waits elsewhere (for a notification that never comes, in a call that does not
return), no thread checks; a thread of playhead does so here.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from playhead_core.process.interpreter_threads import Bell, Thread
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.attribution.owners import Owner, owner_of
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.scheduler.gates.tape import TapeGate
from playhead_instrumentation.scheduler.ledger import Rest
from playhead_instrumentation.scheduler.threads import is_of_program

LOOK_S = 0.1
"""Seconds between checks."""

CERTAIN_S = 5.0
"""Seconds without progress if all threads wait for each other."""

BLOCKS_S = 600.0
"""Seconds without progress if a thread blocks in something unknown; computing is progress."""

REFUSED_S = 10.0
"""The same after a refused request, which may have ended the thread that the others wait for."""

PAST_TAPE_S = 60.0
"""Seconds for which blocking or computing is waited for at the end of a killed process's tape."""

COMPUTES = 0.1
"""Share of a processor, over all threads, from which on the process counts as computing."""

HELPERS = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")
"""Child processes that live as long as their parent and do no work."""


class Refusals:
    """Whether a request was refused, in this process or in any forked from it since: a shared byte."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, 1)

    def note(self) -> None:
        """Note that a request was refused."""
        self._page[0] = 1

    def any(self) -> bool:
        """Whether a request was refused."""
        return bool(self._page[0])


class Standstill:
    """Watches one process of a replay."""

    def __init__(
        self, gate: TapeGate, *, killed: bool, refusals: Refusals, ends: Callable[[list[str]], None]
    ) -> None:
        """``killed``: the recorded process was. ``ends``: called with what each thread waits for."""
        self._gate = gate
        self._refusals = refusals
        self._killed = killed
        self._ends = ends
        self._instant = REAL.now_s(), time.process_time()
        self._seen: tuple[Rest | None, float] = None, 0.0
        self._idle_s = 0.0

    def start(self) -> None:
        """Watch until the gate is closed."""
        Thread(f"{lanes.OWN_THREADS}standstill", self._run).start()

    def _run(self) -> None:
        pause = Bell()
        while not self._gate.closed():
            pause.wait(LOOK_S)
            if self._stands():
                self._ends(list(waiting()))
                return

    def _stands(self) -> bool:
        seen = rest, _ = self._gate.rest()
        now_s, used_s = REAL.now_s(), time.process_time()
        spent_s = min(now_s - self._instant[0], 2 * LOOK_S)  # unscheduled time does not count
        computes = used_s - self._instant[1] > COMPUTES * (now_s - self._instant[0])
        self._instant = now_s, used_s
        past_tape = self._killed and not self._gate.expects()
        if rest is None or seen != self._seen or (computes and not past_tape):
            self._seen, self._idle_s = seen, 0.0
            return False
        self._idle_s += spent_s
        blocks_s = REFUSED_S if self._refusals.any() else PAST_TAPE_S if past_tape else BLOCKS_S
        patience_s = CERTAIN_S if rest == "waits" else blocks_s
        if self._idle_s >= patience_s and _has_children():
            self._idle_s = 0.0
        return self._idle_s >= patience_s


def _has_children() -> bool:
    """Whether a child process is working; it has a watcher of its own."""
    for path in Path("/proc/self/task").glob("*/children"):
        try:
            children = path.read_bytes().split()
        except OSError:
            continue
        if any(_works(child.decode()) for child in children):
            return True
    return False


def _works(pid: str) -> bool:
    try:
        words = Path("/proc", pid, "cmdline").read_bytes()
    except OSError:
        return False
    return bool(words) and not any(helper in words for helper in HELPERS)  # a zombie has no words


def waiting() -> Iterator[str]:
    """For each thread of the program: ``MainThread waits in Event.wait, called in agent.py:12 (f)``."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    for thread in threading.enumerate():
        if thread.ident in frames and is_of_program(thread):
            yield f"{thread.name} {_place(frames[thread.ident])}"


def _place(frame: FrameType) -> str:
    found: FrameType | None = frame
    above = ""
    while found is not None:
        name = found.f_code.co_filename
        owner = owner_of(name)
        if owner is not Owner.OURS:
            if owner in (Owner.PROGRAM, Owner.MADE):
                at = f"{os.path.basename(name)}:{found.f_lineno} ({found.f_code.co_qualname})"
                return f"waits in {above}, called in {at}" if above else f"is in {at}"
            above = found.f_code.co_qualname
        found = found.f_back
    return f"waits in {above}"
