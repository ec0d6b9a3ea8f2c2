"""Locks of instances: file locks, held as long as the process that writes the tape lives."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from playhead_exporter.spool.folders import OWNER, make_folder, remove_folder
from playhead_semconv.process.own_descriptors import (
    Identity,
    OwnDescriptor,
    OwnLock,
    identity,
    open_own,
    read_file,
)

TRIES = 5
"""Attempts to take a lock: a process that checks an owner holds its lock for a moment."""


class OwnerLock:
    """An exclusive lock on an instance folder. The kernel releases it when the process ends."""

    def __init__(self, folder: Path, file: OwnDescriptor) -> None:
        self.folder = folder
        self._held = OwnLock(file)

    @classmethod
    def take(cls, folder: Path) -> OwnerLock | None:
        """Lock ``folder``; None if another process holds the lock or the folder does not exist."""
        path = folder / OWNER
        try:
            file = open_own(path, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if identity(file.number) != _identity_of(path):
                raise BlockingIOError(errno.EAGAIN, "the folder was removed meanwhile")
            os.ftruncate(file.number, 0)
            os.pwrite(file.number, f"{os.getpid()}\n".encode(), 0)
        except (BlockingIOError, FileNotFoundError):
            file.close()
            return None
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                return cls(folder, file)
            file.close()
            raise
        return cls(folder, file)

    def release(self) -> None:
        """Release the lock."""
        self._held.release()

    def forget_after_fork(self) -> None:
        """In a forked child: close what is inherited; the parent keeps the lock."""
        self._held.forget()


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


def _identity_of(path: Path) -> Identity:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def owner_alive(folder: Path) -> bool:
    """Whether a process holds the lock of ``folder``. Has no side effects."""
    try:
        file = open_own(folder / OWNER, os.O_RDWR)
    except OSError:
        return False
    with file:
        try:
            fcntl.flock(file.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def owner_pid(folder: Path) -> int | None:
    """Process id of the last owner of ``folder``, or None if unknown."""
    try:
        return int(read_file(folder / OWNER))
    except (OSError, ValueError):
        return None
