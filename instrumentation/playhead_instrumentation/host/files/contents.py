"""What large files hold: read, and hashed, behind the program's back.

The program does not wait for it. `Contents.later` opens the file once more, which costs microseconds,
and numbers it; a thread reads it then, within a budget, and tells. What it has read counts only where
the file looks before and after as it did when the program opened it.
"""

from __future__ import annotations

import _thread
import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import blake3

from playhead_instrumentation.runtime.lanes import Shadow

log = logging.getLogger(__name__)

HEAD_BYTES: Final = 64 << 10
"""Largest file that is read while the program waits. It takes 0.3 ms, mostly to find credentials."""

WRITERS_BYTES: Final = 1 << 20
"""The same, but for finding credentials, where the program may change the file from now on."""

BUDGET_BYTES: Final = 512 << 20
BUDGET_NS: Final = 5_000_000_000
"""Of processor time. What is used grows again by the following every second, up to these."""
BYTES_A_SECOND: Final = 1 << 20
NS_A_SECOND: Final = 10_000_000

MOST_WAITING: Final = 64
"""So many files wait to be read."""

PATIENCE_S: Final = 0.01
"""How long the program waits where more would."""

SETTLE_S: Final = 0.1
"""How long the program waits at most before it changes a file that is still to be read."""

END_S: Final = 2.0
"""How long the end of the process waits for all that is left."""

CHUNK_BYTES: Final = 1 << 20

Unkept: TypeAlias = Literal["changed", "budget", "busy", "unreadable", "ended"]
"""Why a content is not kept: the file changed meanwhile; there was no budget left; too many waited; it
could not be opened again; the process ended before."""

Signature: TypeAlias = tuple[int, int, int, int]

_os_open: Final = os.open
_os_close: Final = os.close
_os_fstat: Final = os.fstat
_getpid: Final = os.getpid
_start: Final = _thread.start_new_thread
_lock: Final = _thread.allocate_lock
_now_ns: Final = time.monotonic_ns
_used_ns: Final = time.thread_time_ns


class Job:
    """A file that is to be read."""

    __slots__ = ("been_read", "data", "fd", "is_told", "lane", "number", "path", "signature", "size")

    def __init__(self, number: int, path: str, lane: int, found: os.stat_result) -> None:
        self.number = number
        self.path = path
        self.lane = lane
        """Of whoever opened it."""
        self.size = found.st_size
        self.signature = signature_of(found)
        self.fd = -1
        """Ours; -1 where its bytes are here already."""
        self.data: bytes | None = None
        self.is_told = False
        self.been_read = _lock()
        """Held until its bytes are."""
        self.been_read.acquire()


Tell: TypeAlias = Callable[[Job, bytes | str], None]
"""Told what a file holds: its bytes; ``digest HEX`` of one that is too large to be kept; or why not."""

DIGEST: Final = "digest "


class Contents:
    """Reads files in a thread of its own, which is there from the first one on. Safe from any thread."""

    def __init__(self, limit_bytes: int, tell: Tell) -> None:
        """``limit_bytes``: of a larger file only the digest is taken."""
        self._limit_bytes = limit_bytes
        self._tell = tell
        self._lock = _lock()
        self._waiting: deque[Job] = deque()
        self._work = _lock()
        """Released when there is something to be done."""
        self._work.acquire()
        self._room = _lock()
        """Released when something was done."""
        self._room.acquire()
        self._count = 0
        self._known: dict[str, tuple[Signature, int]] = {}
        self._locked: list[tuple[int, int]] = []
        """Descriptor and inode of what the program has locked: closing it would take the lock away."""
        self._bytes, self._ns = BUDGET_BYTES, BUDGET_NS
        self._at_ns = _now_ns()
        self._runs = self._busy = self._over = False

    def later(
        self, path: str, lane: int, found: os.stat_result, fd: int, data: bytes | None = None
    ) -> int | Unkept:
        """Have a file read that the program has opened as ``fd``: the number under which it is told.

        ``data``: its bytes, where they were read at once.
        """
        signature = signature_of(found)
        known = self._known.get(path)
        if known is not None and known[0] == signature:
            return known[1]
        refused = self._refused(found.st_size)
        if refused is not None:
            return refused
        if len(self._waiting) >= MOST_WAITING and not self._waited(PATIENCE_S):
            return "busy"
        with self._lock:
            self._count += 1
            job = Job(self._count, path, lane, found)
        if data is None:
            try:
                job.fd = again(fd, path)
            except OSError:
                return "unreadable"
        else:
            job.data = data
            job.been_read.release()
        self._put(job)
        return job.number

    def remember(self, path: str, found: os.stat_result, number: int) -> None:
        """As long as the file looks like this it holds what is told under that number."""
        if len(self._known) >= 10_000:
            self._known.clear()
        self._known[path] = signature_of(found), number

    def settle(self, path: str | None = None, timeout_s: float = SETTLE_S) -> None:
        """Read this file (None: every file that waits) before the program changes it."""
        end_ns = _now_ns() + int(timeout_s * 1e9)
        for job in list(self._waiting):
            if path is None or job.path == path:
                left_s = (end_ns - _now_ns()) / 1e9
                if left_s > 0 and job.been_read.acquire(timeout=left_s):
                    job.been_read.release()

    def close(self, timeout_s: float = END_S) -> None:
        """The process ends: wait for what is left, and tell what could not be waited for."""
        end_ns = _now_ns() + int(timeout_s * 1e9)
        while self._waiting and self._runs and _now_ns() < end_ns:
            self._waited((end_ns - _now_ns()) / 1e9)
        self._over = True
        for job in list(self._waiting):
            self._told(job, "ended")

    def left_behind(self) -> None:
        """This is a fork: the files that the parent reads are the parent's."""
        self._over = True
        for fd in [job.fd for job in self._waiting] + [fd for fd, _ in self._locked]:
            if fd >= 0:
                with contextlib.suppress(OSError):
                    _os_close(fd)

    def _refused(self, size: int) -> Unkept | None:
        if self._over:
            return "ended"
        with self._lock:
            now_ns = _now_ns()
            passed_s, self._at_ns = (now_ns - self._at_ns) / 1e9, now_ns
            self._bytes = min(BUDGET_BYTES, self._bytes + int(passed_s * BYTES_A_SECOND))
            self._ns = min(BUDGET_NS, self._ns + int(passed_s * NS_A_SECOND))
            if self._ns <= 0 or self._bytes < size:
                return "budget"
            self._bytes -= size
        return "busy" if len(self._locked) >= MOST_WAITING else None

    def _put(self, job: Job) -> None:
        self._waiting.append(job)
        with self._lock:
            start, self._runs = not self._runs, True
        if start:
            try:
                _start(self._run, ())
            except RuntimeError:  # the interpreter goes down
                self._runs = False
        _open(self._work)

    def _waited(self, timeout_s: float) -> bool:
        """Whether one was done meanwhile."""
        return self._room.acquire(timeout=max(0.0, timeout_s))

    def _run(self) -> None:
        with Shadow():
            while not self._over:
                self._work.acquire()
                while self._waiting and not self._over:
                    began_ns = _used_ns()
                    job = self._waiting[0]
                    try:
                        self._told(job, self._read(job))
                    except Exception:
                        log.debug("playhead could not read a file again", exc_info=True)
                    finally:
                        with contextlib.suppress(ValueError):
                            self._waiting.remove(job)
                        with self._lock:
                            self._ns -= _used_ns() - began_ns
                        _open(self._room)

    def _told(self, job: Job, what: bytes | str) -> None:
        """Once for each job."""
        with self._lock:
            if job.is_told:
                return
            job.is_told = True
        if isinstance(what, str) and not what.startswith(DIGEST):
            self._known.pop(job.path, None)
        self._tell(job, what)

    def _read(self, job: Job) -> bytes | str:
        if job.data is not None:
            return job.data
        try:
            if signature_of(_os_fstat(job.fd)) != job.signature:
                return "changed"
            what = self._bytes_of(job) if job.size <= self._limit_bytes else self._digest_of(job)
            if signature_of(_os_fstat(job.fd)) != job.signature:
                return "changed"
            return what
        except OSError:
            return "unreadable"
        finally:
            self._close(job)
            job.been_read.release()

    def _bytes_of(self, job: Job) -> bytes | str:
        pieces: list[bytes] = []
        at = 0
        while at < job.size and (piece := os.pread(job.fd, min(CHUNK_BYTES, job.size - at), at)):
            pieces.append(piece)
            at += len(piece)
        return b"".join(pieces) if at == job.size else "changed"

    def _digest_of(self, job: Job) -> str:
        hasher, at, began_ns = blake3.blake3(), 0, _used_ns()
        while at < job.size and (piece := os.pread(job.fd, CHUNK_BYTES, at)):
            if self._over:
                return "ended"
            if _used_ns() - began_ns > self._ns:
                return "budget"
            hasher.update(piece)
            at += len(piece)
        return DIGEST + hasher.hexdigest() if at == job.size else "changed"

    def _close(self, job: Job) -> None:
        self._locked.append((job.fd, job.signature[2]))
        job.fd = -1
        locked = _locked_by_us()
        still: list[tuple[int, int]] = []
        for fd, inode in self._locked:
            if inode in locked:
                still.append((fd, inode))
            else:
                with contextlib.suppress(OSError):
                    _os_close(fd)
        self._locked = still


def again(fd: int, path: str) -> int:
    """One more descriptor of an open file, to read it. `OSError` where that cannot be."""
    own = f"/proc/self/fd/{fd}"
    return _os_open(own if os.path.exists(own) else path, os.O_RDONLY | os.O_CLOEXEC)


def signature_of(found: os.stat_result) -> Signature:
    """What changes when the content of a file does: its time, its size, its identity."""
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _open(lock: _thread.LockType) -> None:
    with contextlib.suppress(RuntimeError):  # it is open
        lock.release()


def _locked_by_us() -> set[int]:
    """Inodes with a POSIX lock of this process: closing any descriptor of such a file drops it."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        fd = _os_open("/proc/locks", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = b""
            while piece := os.read(fd, 1 << 16):
                text += piece
        finally:
            _os_close(fd)
        own = str(_getpid()).encode()
        for line in text.splitlines():
            words = line.split()
            if b"POSIX" in words and own in words:
                place = words[words.index(own) + 1]
                found.add(int(place.rpartition(b":")[2]))
    return found
