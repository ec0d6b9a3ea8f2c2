"""Copies active segments to the disk in a thread of its own, the only thread that waits for the disk."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from playhead_core.process.interpreter_threads import Bell, Thread, Waiters
from playhead_core.process.own_descriptors import OwnDescriptor, open_own
from playhead_exporter.delivery import DeliveryNotices
from playhead_exporter.spool.active_segment import ActiveSegment
from playhead_exporter.spool.folders import DiskBudget, remove_file, segment_name
from playhead_exporter.spool.spool import Spool

PIECE_BYTES = 256 * 1024
INTERVAL_S = 1.0
"""Seconds from the first append after an idle time to its copy, and between copies.

The copy protects against a crash of the machine. Shared memory survives the process."""
STALL_S = 0.1
"""A write that takes longer counts as a stall."""
STALL_LOOK_S = 0.05
"""Seconds between two looks of `Copier.stop` whether the disk stalls."""
RETRY_S = 0.25
"""Seconds until the disk is tried again after a refusal, while facts are appended."""
LONGEST_RETRY_S = 30.0
"""Longest such pause, reached by doubling while nothing is appended."""

Write = Callable[[int, memoryview, int], int]
"""As ``os.pwrite``: (descriptor, data, offset) → number of bytes written."""


class Copier:
    """Copies the active segments of one spool into segment files on disk, byte for byte.

    A file is always a prefix of its active segment. So an interrupted copy can be continued, by this
    process or, after its death, by another one.
    """

    def __init__(
        self,
        spool: Spool,
        budget: DiskBudget,
        notices: DeliveryNotices,
        *,
        sync: bool = False,
        write: Write = os.pwrite,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """``sync``: a copy counts only when it is synced, and appends wait for it.

        ``look``: called after each round.
        """
        self._spool = spool
        self._folders = spool.folders
        self._budget = budget
        self._notices = notices
        self._sync = sync
        self._write = write
        self._look = look
        self._files: dict[int, OwnDescriptor] = {}
        self._writing_since: float | None = None
        self._problem = ""
        self._bell = Bell()
        self._retry_s = RETRY_S
        self._urgent = False
        """Whether a thread waits for a copy."""
        self._stopping = False
        self._copied = Waiters()
        self._lost_reported = ""
        self._instance = spool.instance
        self.thread = Thread("playhead-copier", self._run)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def wake(self) -> None:
        """Copy now: a thread waits for it."""
        self._urgent = True
        self._bell.ring()

    def news(self) -> None:
        """Resume after an idle time: copy the append together with those that follow soon."""
        self._bell.ring()

    def stalled(self) -> str:
        """Why the disk does not accept data at the moment; empty if it does."""
        since = self._writing_since
        if since is not None and time.monotonic() - since > STALL_S:
            return "the disk stalls"
        return self._problem

    def wait(self, active: ActiveSegment, upto: int, timeout_s: float) -> bool:
        """Wait until ``active`` is on disk up to ``upto``. False at once if the disk is stalled."""
        if active.copied >= upto:
            return True
        if self.stalled() or not self.thread.is_alive():
            return False
        self.wake()
        self._copied.wait_for(lambda: active.copied >= upto or bool(self._problem), timeout_s)
        return active.copied >= upto

    def await_room(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` for the next copy; False if the copier does not run."""
        if not self.thread.is_alive():
            return False
        self.wake()
        self._copied.wait(timeout_s)
        return True

    def flush(self, timeout_s: float) -> bool:
        """Copy everything appended so far; False if it fails or takes longer than ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        return all(
            self.wait(active, active.written, max(0.0, deadline - time.monotonic()))
            for active in list(self._spool.active_segments.values())
            if not active.released
        )

    def stop(self, timeout_s: float) -> None:
        """Stop after the current round; wait at most ``timeout_s``, and not for a stalled disk."""
        self._stopping = True
        self.wake()
        until_s = time.monotonic() + timeout_s
        while self.thread.is_alive() and (left_s := until_s - time.monotonic()) > 0:
            self.thread.join(min(left_s, STALL_LOOK_S))
            if self.stalled():
                break
        if not self.thread.is_alive():
            while self._files:
                self._files.popitem()[1].close()
        self._report_losses()

    def _run(self) -> None:
        while not self._stopping:
            if not self._urgent:
                self._pause()
            self._urgent = False
            if self._spool.instance != self._instance:
                return
            try:
                self.round()
                self._look()
            except Exception as unexpected:  # the thread must survive: it is never restarted
                self._refused(repr(unexpected), f"the spool cannot be copied: {unexpected!r}")

    def _pause(self) -> None:
        """Wait until the next round is due or, if everything is copied, until the next append."""
        if not self._may_sleep():
            self._bell.wait(INTERVAL_S)
            return
        heard = self._bell.wait(self._retry_s if self._problem else None)
        self._retry_s = RETRY_S if heard else min(2 * self._retry_s, LONGEST_RETRY_S)
        if heard and not self._urgent:
            self._bell.wait(RETRY_S if self._problem else INTERVAL_S)

    def _may_sleep(self) -> bool:
        """Whether there is nothing to do before the next append, which then rings the bell."""
        if not self._problem and not self._all_copied():
            return False
        self._spool.is_idle = True
        return bool(self._problem) or self._all_copied()

    def _all_copied(self) -> bool:
        return self._spool.settled() and not any(
            active.rolled or active.copied < active.written > active.first_frame
            for active in list(self._spool.active_segments.values())
            if not active.released
        )

    def round(self) -> None:
        """Copy everything that is not on disk yet, prepare the next segment, and report losses."""
        self._spool.settle_if_free()
        for number in sorted(self._spool.active_segments):
            active = self._spool.active_segments.get(number)
            if active is None:
                continue
            try:
                if not self._copy(active):
                    break
            except OSError as problem:
                self._refused(
                    problem.strerror or str(problem),
                    f"the spool {self._folders.spool} cannot be written: {problem.strerror}",
                )
                break
        else:
            self._problem = ""
            self._notices.over("disk", f"the spool {self._folders.spool} is written again")
        self._writing_since = None
        for number in [number for number in self._files if number not in self._spool.active_segments]:
            self._files.pop(number).close()  # delivered before it was copied completely
        self._copied.tell()
        self._spool.prepare()
        self._spool.settle_if_free()
        self._report_losses()

    def _copy(self, active: ActiveSegment) -> bool:
        """Copy the new part of ``active``; False if the disk budget does not allow it."""
        rolled = active.rolled
        end = active.written
        if active.copied < end and end > active.first_frame and not active.released:
            if not self._budget.allows(end - active.copied):
                self._refused(
                    "the disk budget is used up",
                    f"the spool {self._folders.spool} is full: {self._budget.limit_bytes} bytes wait for"
                    " delivery. Facts are kept in memory, then dropped. Start a receiver, or raise"
                    " PLAYHEAD_SPOOL_BUDGET_BYTES",
                )
                return False
            self._writing_since = time.monotonic()
            offset = active.copied
            with memoryview(active.map) as data:
                while offset < end:
                    with data[offset : min(end, offset + PIECE_BYTES)] as piece:
                        offset += self._write(self._fd(active), piece, offset)
                    if not self._sync:
                        active.copied = offset
                    self._writing_since = time.monotonic()
            if self._sync:
                fd = self._fd(active)
                os.fdatasync(fd)
                os.posix_fallocate(fd, 0, 1)  # fails if the journal has stopped; a sync may not
                active.copied = offset
            self._writing_since = None
        if rolled and (active.copied >= end or active.released or end == active.first_frame):
            self._finish(active)
        return True

    def _fd(self, active: ActiveSegment) -> int:
        """The number of the segment; it is opened again if the program has closed it."""
        file = self._files.get(active.number)
        fd = -1 if file is None else file.number
        if fd < 0:
            home = self._folders.home(self._instance)
            self._spool.owned.take(home)
            with contextlib.suppress(OSError):
                self._folders.tie(self._instance)
            path = home / segment_name(active.number, "tape")
            opened = open_own(path, os.O_RDWR | os.O_CREAT)
            self._files[active.number], fd = opened, opened.number
        return fd

    def _finish(self, active: ActiveSegment) -> None:
        file = self._files.pop(active.number, None)
        if file is not None:
            file.close()
        self._spool.active_segments.pop(active.number, None)
        active.remove()
        self._copied.tell()
        if active.released or active.copied == 0:
            path = self._folders.home(self._instance) / segment_name(active.number, "tape")
            remove_file(path)
            self._spool.segments.discard(active.number)

    def _refused(self, problem: str, text: str) -> None:
        self._problem = problem
        self._notices.say("disk", text)

    def _report_losses(self) -> None:
        lost = self._spool.losses
        if lost != self._lost_reported:
            self._lost_reported = lost
            self._notices.say(
                "lost",
                f"facts are being lost, the tape has a gap: {self._spool.why_lost}; {lost} so far",
            )
        elif lost and not self._problem:
            self._notices.over(
                "lost",
                f"{lost} were lost; recording is complete again",
            )
