"""Reads and hashes large files in the background.

The program does not wait for it. `Contents.later` opens the file once more, which costs microseconds,
and gives it a number. A thread then reads it, within a budget, and reports the content. What was read
counts only if the file's signature before and after is that of the moment when the program opened it.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Generator
from typing import Final, Literal, TypeAlias

import blake3

from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching.lanes import Shadow

log = Log(__name__)

HEAD_BYTES: Final = 64 << 10
"""Largest file that is read while the program waits. Takes 0.3 ms, mostly to find credentials."""

WRITERS_BYTES: Final = 1 << 20
"""Largest file that is read while the program waits, if the program may change it from now on.

Credentials are looked for later.
"""

BUDGET_BYTES: Final = 512 << 20
BUDGET_NS: Final = 5_000_000_000
"""Largest budget of processor time. What is used grows back each second by the following amount."""
BYTES_A_SECOND: Final = 1 << 20
NS_A_SECOND: Final = 10_000_000

MOST_WAITING: Final = 64
"""Files that may wait to be read."""

PATIENCE_S: Final = 0.01
"""How long the program waits if too many files are waiting, in seconds."""

SETTLE_S: Final = 0.1
"""How long the program waits at most before it changes an unread file, in seconds."""

END_S: Final = 2.0
"""How long the end of the process waits for unread files, in seconds."""

CHUNK_BYTES: Final = 1 << 20

Unkept: TypeAlias = Literal["changed", "budget", "busy", "unreadable", "ended"]
"""Why a content is not kept: the file changed while it was read; no budget was left; too many files were
waiting; the file could not be opened again; the process ended first."""

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
    """A file to read."""

    __slots__ = ("been_read", "data", "fd", "is_told", "lane", "number", "path", "signature", "size")

    def __init__(self, number: int, path: str, lane: int, found: os.stat_result) -> None:
        self.number = number
        self.path = path
        self.lane = lane
        """The lane that opened it."""
        self.size = found.st_size
        self.signature = signature_of(found)
        self.fd = -1
        """Our descriptor of the file; -1 if its bytes are already here."""
        self.data: bytes | None = None
        self.is_told = False
        self.been_read = _lock()
        """Held until the bytes have been read."""
        self.been_read.acquire()


Tell: TypeAlias = Callable[[Job, bytes | str], None]
"""Called with the content of a file: its bytes, ``digest HEX`` if it is too large to store, or the
reason why it is not kept."""

DIGEST: Final = "digest "


class Contents:
    """Reads files in a thread of its own, which starts with the first file. Safe from any thread."""

    def __init__(self, limit_bytes: int, tell: Tell) -> None:
        """``limit_bytes``: only the digest of a larger file is taken."""
        self._limit_bytes = limit_bytes
        self._tell = tell
        self._lock = _lock()
        self._waiting: deque[Job] = deque()
        self._work = _lock()
        """Released when there is work."""
        self._work.acquire()
        self._room = _lock()
        """Released when a file is done."""
        self._room.acquire()
        self._count = 0
        self._known: dict[str, tuple[Signature, int]] = {}
        self._locked: list[tuple[int, int]] = []
        """Descriptor and inode of files that the program has locked: closing one would drop the lock."""
        self._bytes, self._ns = BUDGET_BYTES, BUDGET_NS
        self._at_ns = _now_ns()
        self._runs = self._busy = self._over = False

    def later(
        self, path: str, lane: int, found: os.stat_result, fd: int, data: bytes | None = None
    ) -> int | Unkept:
        """Queue a file that the program has opened as ``fd``; gives the number of its report.

        If the content is not kept, gives the reason. ``data``: its bytes, if already read.
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
        """Note that a file with this signature has the content reported under ``number``."""
        if len(self._known) >= 10_000:
            self._known.clear()
        self._known[path] = signature_of(found), number

    def settle(self, path: str | None = None, timeout_s: float = SETTLE_S) -> None:
        """Read this file (None: all waiting files) before the program changes it."""
        end_ns = _now_ns() + int(timeout_s * 1e9)
        for job in list(self._waiting):
            if path is None or job.path == path:
                left_s = (end_ns - _now_ns()) / 1e9
                if left_s > 0 and job.been_read.acquire(timeout=left_s):
                    job.been_read.release()

    def close(self, timeout_s: float = END_S) -> None:
        """At the end of the process: wait for the rest, and report the files that took too long."""
        end_ns = _now_ns() + int(timeout_s * 1e9)
        while self._waiting and self._runs and _now_ns() < end_ns:
            self._waited((end_ns - _now_ns()) / 1e9)
        self._over = True
        for job in list(self._waiting):
            self._told(job, "ended")

    def left_behind(self) -> None:
        """After a fork, in the child: drop the parent's files."""
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
            except RuntimeError:  # the interpreter is shutting down
                self._runs = False
        _open(self._work)

    def _waited(self, timeout_s: float) -> bool:
        """Wait for a file to be done; whether one was."""
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
        """Report a job; only once per job."""
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
    """One more descriptor of an open file, for reading. Raises `OSError` if that fails."""
    own = f"/proc/self/fd/{fd}"
    return _os_open(own if os.path.exists(own) else path, os.O_RDONLY | os.O_CLOEXEC)


def signature_of(found: os.stat_result) -> Signature:
    """What changes with the content of a file: modification time, size, inode and device."""
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _open(lock: _thread.LockType) -> None:
    with contextlib.suppress(RuntimeError):  # the lock is already released
        lock.release()


def _locked_by_us() -> set[int]:
    """Inodes on which this process has a POSIX lock; closing any descriptor of such a file drops it."""
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


def bytes_of(fd: int, path: str, start: int, limit_bytes: int) -> bytes | None:
    """Return the content of an open file from ``start`` on; None if it is longer than the limit."""
    with _readable(fd, path) as reading:
        pieces: list[bytes] = []
        at = start
        while at - start <= limit_bytes:
            try:
                piece = os.pread(reading, CHUNK_BYTES, at)
            except BlockingIOError:
                break
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            at += len(piece)
    return None


def digest_of_file(fd: int, path: str) -> bytes:
    """Return the BLAKE3 digest of an open file."""
    hasher = blake3.blake3()
    with _readable(fd, path) as reading:
        at = 0
        while piece := os.pread(reading, CHUNK_BYTES, at):
            hasher.update(piece)
            at += len(piece)
    return hasher.digest()


@contextlib.contextmanager
def _readable(fd: int, path: str) -> Generator[int]:
    """A readable descriptor of the same file, even if ``fd`` is open for writing only."""
    try:
        os.pread(fd, 1, 0)
    except OSError:
        pass
    else:
        yield fd
        return
    reading = again(fd, path)
    try:
        yield reading
    finally:
        _os_close(reading)
