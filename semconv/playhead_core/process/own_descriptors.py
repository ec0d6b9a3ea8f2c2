"""Descriptors of playhead's own inside a program that may close any number and use it again.

``os.closerange``, a classic daemon and a double close free numbers that the program never opened. The
next file of the program gets one of them, and whoever still writes to it by number writes into that
file. So playhead keeps its descriptors among high numbers, because the system gives out the lowest free
one; looks at the identity of the file before it writes or closes; and keeps a lock by a mapping, which
has no number.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import resource
import sys
from collections.abc import Callable
from typing import Final

LIMIT: Final = 4096
"""Own numbers are below this one, so that the table of the process stays small."""
OWN: Final = 128
"""Own numbers are at most this far below the limit of the process."""
READ_BYTES: Final = 1 << 20
_READ_WRITE: Final = mmap.PROT_READ | mmap.PROT_WRITE
_MAP_FIXED: Final = 0x10
"""As Linux, macOS and the BSDs define it."""

# The originals: a recording covers them for the program.
_fstat: Final = os.fstat
_stat: Final = os.stat
_open: Final = os.open
_read: Final = os.read
_write: Final = os.write
_close: Final = os.close
_flock: Final = fcntl.flock

if sys.version_info < (3, 13):
    import ctypes  # now: a fork while a thread imports it would leave half of it to the child

    _system_mmap: Final = ctypes.CDLL(None, use_errno=True).mmap
    _system_mmap.restype = ctypes.c_void_p
    _system_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long]

Identity = tuple[int, int] | None
"""Device and inode; None of a number that is not open."""


def identity(number: int) -> Identity:
    """Return which open file ``number`` means now."""
    try:
        status = _fstat(number)
    except (OSError, OverflowError):
        return None
    return status.st_dev, status.st_ino


def moved_up(number: int, is_own: Callable[[os.stat_result], bool] = lambda status: True) -> int:
    """Move an open file to a high number that the program does not get; ``number`` if there is none.

    ``is_own``: whether that is the file which was opened. If not, the program has closed the number and
    uses it since: OSError.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = (LIMIT if soft == resource.RLIM_INFINITY else min(soft, LIMIT)) - OWN
    if lowest <= number:
        return number
    try:
        high = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, lowest)
    except OSError as problem:
        if problem.errno == errno.EBADF:
            raise
        return number
    if not is_own(_fstat(high)):
        _close(high)
        raise OSError(errno.EBADF, "the program closed a number that it did not open")
    if identity(number) == identity(high):
        _close(number)
    return high


class OwnDescriptor:
    """An open file. It may be lost at any moment, because the program closes its number."""

    __slots__ = ("_identity", "_number")

    def __init__(
        self, number: int, is_own: Callable[[os.stat_result], bool] = lambda status: True
    ) -> None:
        """Take over the open file ``number``, which is invalid afterwards. OSError as of `moved_up`."""
        self._number = moved_up(number, is_own)
        self._identity: Final = identity(self._number)

    @property
    def number(self) -> int:
        """The number of the file; -1 if it is closed or means another file by now."""
        own = self._number
        return own if own >= 0 and identity(own) == self._identity else -1

    def close(self) -> None:
        """Close the file, unless the program has done so. Idempotent."""
        number, self._number = self.number, -1
        if number >= 0:
            _close(number)

    def __enter__(self) -> OwnDescriptor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_own(path: str | os.PathLike[str], flags: int, mode: int = 0o600) -> OwnDescriptor:
    """Open a file. OSError."""
    return OwnDescriptor(_open(path, flags | os.O_CLOEXEC, mode), lambda status: _is_at(path, status))


def _is_at(path: str | os.PathLike[str], status: os.stat_result) -> bool:
    try:
        return os.path.samestat(_stat(path), status)
    except OSError:
        return True  # it has been removed meanwhile


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file. OSError."""
    with open_own(path, os.O_RDONLY) as file:
        parts: list[bytes] = []
        while part := _read(file.number, READ_BYTES):
            parts.append(part)
    return b"".join(parts)


def write_file(path: str | os.PathLike[str], data: bytes, flags: int = os.O_TRUNC) -> None:
    """Write ``data`` to a file of the user alone; ``flags``: besides those that create it. OSError."""
    require_room(len(data))
    with open_own(path, os.O_WRONLY | os.O_CREAT | flags) as file:
        with memoryview(data) as rest:
            done = 0
            while done < len(data):
                done += _write(file.number, rest[done:])


def require_room(size: int) -> None:
    """Raise OSError if no file of this process may have ``size`` bytes.

    The system would send SIGXFSZ, which ends a program that does not ignore it, to the thread that
    writes. Threads of playhead block the signal; call this where a thread of the program writes.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and size > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def map_file(number: int, size: int, flags: int = mmap.MAP_PRIVATE) -> mmap.mmap:
    """Map ``size`` bytes of an open file, which the caller may close then. OSError.

    The mapping holds no descriptor. With ``MAP_PRIVATE``, what is written to it stays in this process.
    """
    if sys.version_info >= (3, 13):
        return mmap.mmap(number, size, flags=flags, prot=_READ_WRITE, trackfd=False)
    # Before, a mapped file keeps a copy of the descriptor, with the lowest free number: one that the
    # program closes and uses again, or that of a standard stream which it has closed. So the file is
    # mapped over memory that has none.
    mapped = mmap.mmap(-1, size)
    start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    if _system_mmap(start, size, _READ_WRITE, flags | _MAP_FIXED, number, 0) != start:
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem))
    return mapped


class OwnLock:
    """Keeps the ``flock`` of an open file until `release` or the end of the process.

    The lock belongs to the open file, not to a number. A mapping keeps that file open where the program
    closes all numbers.
    """

    def __init__(self, file: OwnDescriptor) -> None:
        """Take over an open, locked file. An empty one is not mapped."""
        number = file.number
        self._map = map_file(number, 1) if _fstat(number).st_size else None
        self._file: Final = file

    def release(self) -> None:
        """Give the lock up. Idempotent."""
        number = self._file.number
        if number >= 0:
            _flock(number, fcntl.LOCK_UN)  # a mapping that cannot be closed would keep it
        self.forget()

    def forget(self) -> None:
        """In the child of a fork: leave the lock to the parent. Idempotent."""
        self._map = None
        self._file.close()
