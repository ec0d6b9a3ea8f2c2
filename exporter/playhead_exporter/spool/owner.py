"""Locks of instances: file locks, held as long as the process that writes the tape lives."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from playhead_exporter.spool.folders import FILE_MODE, OWNER, make_folder, remove_folder

TRIES = 5
"""Attempts to take a lock: a process that checks an owner holds its lock for a moment."""


class OwnerLock:
    """An exclusive lock on an instance folder. The kernel releases it when the process ends."""

    def __init__(self, folder: Path, fd: int) -> None:
        self.folder = folder
        self._fd = fd

    @classmethod
    def take(cls, folder: Path) -> OwnerLock | None:
        """Lock ``folder``; None if another process holds the lock or the folder does not exist."""
        path = folder / OWNER
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            here = os.fstat(fd)
            there = os.stat(path)
            if (here.st_ino, here.st_dev) != (there.st_ino, there.st_dev):
                raise BlockingIOError(errno.EAGAIN, "the folder was removed meanwhile")
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except (BlockingIOError, FileNotFoundError):
            os.close(fd)
            return None
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                return cls(folder, fd)
            os.close(fd)
            raise
        return cls(folder, fd)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._fd)

    def forget_after_fork(self) -> None:
        """In a forked child: close the inherited descriptor; the parent keeps the lock."""
        os.close(self._fd)


class OwnedFolders:
    """The instance folders that this process owns, each locked."""

    def __init__(self) -> None:
        self._locks: dict[str, OwnerLock] = {}

    def take(self, folder: Path) -> None:
        """Create and lock an instance folder, once. OSError if that fails."""
        key = os.fspath(folder)
        for _ in range(TRIES):
            if key in self._locks:
                return
            make_folder(folder)
            lock = OwnerLock.take(folder)
            if lock is not None:
                self._locks[key] = lock
                return
        raise BlockingIOError(errno.EAGAIN, f"{folder} is locked by another process")

    def release(self) -> None:
        """Release all locks, so that another process may deliver."""
        for lock in self._locks.values():
            lock.release()

    def remove(self) -> None:
        """Delete the folders that are empty, and release all."""
        for key in list(self._locks):
            remove_folder(Path(key))
            self._locks.pop(key).release()

    def forget_after_fork(self) -> None:
        """In a forked child: they belong to the parent."""
        for lock in self._locks.values():
            lock.forget_after_fork()


def owner_alive(folder: Path) -> bool:
    """Whether a process holds the lock of ``folder``. Has no side effects."""
    try:
        fd = os.open(folder / OWNER, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def owner_pid(folder: Path) -> int | None:
    """Process id of the last owner of ``folder``, or None if unknown."""
    try:
        return int((folder / OWNER).read_text("ascii"))
    except (OSError, ValueError):
        return None
