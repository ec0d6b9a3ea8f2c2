"""Copies heads to the disk, in a thread of its own: the only one that ever waits for the disk."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from playhead_exporter.notices import Notices
from playhead_exporter.spool.budget import Budget
from playhead_exporter.spool.head import Head
from playhead_exporter.spool.places import FILE_MODE, Places, remove_file, segment_name
from playhead_exporter.spool.spool import Spool
from playhead_semconv.process.interpreter_threads import Bell, Changes, Thread

PIECE_BYTES = 256 * 1024
STALL_S = 0.02
"""A write that takes longer than this is a stall."""
RETRY_S = 0.25
"""How soon the disk is tried again after it refused, as long as something is appended."""
LONGEST_RETRY_S = 30.0
"""And else, at last."""

Write = Callable[[int, memoryview, int], int]
"""``os.pwrite``: descriptor, data, offset; how many bytes were written."""


class Copier:
    """Copies the heads of one spool into its segments on disk, byte for byte.

    A segment is a prefix of its head, so a copy that was interrupted is simply continued, by this
    process or, after its death, by another one.
    """

    def __init__(
        self,
        spool: Spool,
        places: Places,
        budget: Budget,
        notices: Notices,
        *,
        interval_s: float = 0.1,
        sync: bool = False,
        write: Write = os.pwrite,
    ) -> None:
        """``sync``: a copy counts when it is synced, and appends wait for that."""
        self._spool = spool
        self._places = places
        self._budget = budget
        self._notices = notices
        self._interval_s = interval_s
        self._sync = sync
        self._write = write
        self._fds: dict[int, int] = {}
        self._writing_since: float | None = None
        self._problem = ""
        self._bell = Bell()
        self._retry_s = RETRY_S
        self._hurries = False
        """Whether somebody waits for a copy."""
        self._stopping = False
        self._copied = Changes()
        self._lost_said = 0
        self._instance = spool.instance
        self.thread = Thread("playhead-copier", self._run)

    def start(self) -> None:
        """Begin to copy."""
        self.thread.start()

    def wake(self) -> None:
        """There is something to copy now."""
        self._hurries = True
        self._bell.ring()

    def news(self) -> None:
        """Something was appended after a rest: go on, and copy it with what follows soon."""
        self._bell.ring()

    def stalled(self) -> str:
        """Why the disk takes nothing just now; empty if it does."""
        since = self._writing_since
        if since is not None and time.monotonic() - since > STALL_S:
            return "the disk stalls"
        return self._problem

    def wait(self, head: Head, upto: int, timeout_s: float) -> bool:
        """Wait until ``head`` is on disk up to ``upto``; at once False while the disk takes nothing."""
        if head.copied >= upto:
            return True
        if self.stalled() or not self.thread.is_alive():
            return False
        self.wake()
        self._copied.wait_for(lambda: head.copied >= upto or bool(self._problem), timeout_s)
        return head.copied >= upto

    def await_room(self, timeout_s: float) -> bool:
        """Wait until a head is copied and free again, at most ``timeout_s``; False if nobody copies."""
        if not self.thread.is_alive():
            return False
        self.wake()
        self._copied.wait(timeout_s)
        return True

    def flush(self, timeout_s: float) -> bool:
        """Copy what is there now; False if that takes longer than ``timeout_s`` or does not succeed."""
        deadline = time.monotonic() + timeout_s
        return all(
            self.wait(head, head.written, max(0.0, deadline - time.monotonic()))
            for head in list(self._spool.heads.values())
            if not head.released
        )

    def stop(self, timeout_s: float) -> None:
        """Stop after the round in progress; a copy that stalls is left behind."""
        self._stopping = True
        self.wake()
        if self.thread.is_alive():
            self.thread.join(timeout_s)
        if not self.thread.is_alive():
            while self._fds:
                os.close(self._fds.popitem()[1])
        self._say_losses()

    def _run(self) -> None:
        while not self._stopping:
            if not self._hurries:
                self._pause()
            self._hurries = False
            if self._spool.instance != self._instance:
                return
            try:
                self.round()
            except Exception as unexpected:  # the thread must live: nobody would start another one
                self._refused(repr(unexpected), f"the spool cannot be copied: {unexpected!r}")

    def _pause(self) -> None:
        """Until the next round is due; where everything is copied, until something is appended."""
        if not self._may_rest():
            self._bell.wait(self._interval_s)
            return
        heard = self._bell.wait(self._retry_s if self._problem else None)
        self._retry_s = RETRY_S if heard else min(2 * self._retry_s, LONGEST_RETRY_S)
        if heard and not self._hurries:
            self._bell.wait(RETRY_S if self._problem else self._interval_s)

    def _may_rest(self) -> bool:
        """Whether there is nothing to do unless something is appended, from now on."""
        if not self._problem and not self._all_copied():
            return False
        self._spool.rests = True
        return bool(self._problem) or self._all_copied()

    def _all_copied(self) -> bool:
        return self._spool.settled() and not any(
            head.rolled or head.copied < head.written > head.first_frame
            for head in list(self._spool.heads.values())
            if not head.released
        )

    def round(self) -> None:
        """Copy everything that is not yet on disk, then see to the next head and to losses."""
        self._spool.settle_if_free()
        for number in sorted(self._spool.heads):
            head = self._spool.heads.get(number)
            if head is None:
                continue
            try:
                if not self._copy(head):
                    break
            except OSError as problem:
                self._refused(
                    problem.strerror or str(problem),
                    f"the spool {self._places.spool} cannot be written: {problem.strerror}",
                )
                break
        else:
            self._problem = ""
            self._notices.over("disk", f"the spool {self._places.spool} is written again")
        self._writing_since = None
        for number in [number for number in self._fds if number not in self._spool.heads]:
            os.close(self._fds.pop(number))  # delivered before all of it was copied
        self._copied.tell()
        self._spool.prepare()
        self._spool.settle_if_free()
        self._say_losses()

    def _copy(self, head: Head) -> bool:
        """Copy what ``head`` has got; False if the disk budget does not allow it."""
        rolled = head.rolled
        end = head.written
        if head.copied < end and end > head.first_frame and not head.released:
            if not self._budget.allows(end - head.copied):
                self._refused(
                    "the disk budget is used up",
                    f"the spool {self._places.spool} is full: {self._budget.limit_bytes} bytes wait for"
                    " delivery. Facts are kept in memory, then dropped. Start a receiver, or raise"
                    " PLAYHEAD_SPOOL_BUDGET_BYTES",
                )
                return False
            self._writing_since = time.monotonic()
            fd = self._fd(head)
            place = head.copied
            with memoryview(head.map) as data:
                while place < end:
                    with data[place : min(end, place + PIECE_BYTES)] as piece:
                        place += self._write(fd, piece, place)
                    if not self._sync:
                        head.copied = place
                    self._writing_since = time.monotonic()
            if self._sync:
                os.fdatasync(fd)
                os.posix_fallocate(fd, 0, 1)  # refused where the journal has stopped and a sync may lie
                head.copied = place
            self._writing_since = None
        if rolled and (head.copied >= end or head.released or end == head.first_frame):
            self._finish(head)
        return True

    def _fd(self, head: Head) -> int:
        fd = self._fds.get(head.number)
        if fd is None:
            home = self._places.home(self._instance)
            self._spool.hold(home)
            with contextlib.suppress(OSError):
                self._places.tie(self._instance)
            path = home / segment_name(head.number, "tape")
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
            self._fds[head.number] = fd
        return fd

    def _finish(self, head: Head) -> None:
        fd = self._fds.pop(head.number, None)
        if fd is not None:
            os.close(fd)
        self._spool.heads.pop(head.number, None)
        head.remove()
        self._copied.tell()
        if head.released or head.copied == 0:
            path = self._places.home(self._instance) / segment_name(head.number, "tape")
            remove_file(path)
            self._spool.segments.discard(head.number)

    def _refused(self, problem: str, text: str) -> None:
        self._problem = problem
        self._notices.say("disk", text)

    def _say_losses(self) -> None:
        lost = self._spool.lost_facts + self._spool.lost_spans
        if lost > self._lost_said:
            self._lost_said = lost
            self._notices.say(
                "lost",
                f"facts are being lost, the tape has a gap: {self._spool.why_lost};"
                f" {self._spool.lost_facts} facts and {self._spool.lost_spans} spans so far",
            )
        elif lost and not self._problem:
            self._notices.over(
                "lost",
                f"{self._spool.lost_facts} facts and {self._spool.lost_spans} spans were lost;"
                " recording is whole again",
            )
