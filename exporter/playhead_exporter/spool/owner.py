"""Locks of instances: file locks, held as long as the process that writes the tape lives."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from pathlib import Path
from typing import Any

from playhead_core.process.own_descriptors import (
    Identity,
    OwnDescriptor,
    OwnLock,
    identity,
    open_own,
    read_file,
)
from playhead_exporter.spool.folders import OWNER, make_folder, remove_folder

TRIES = 5
"""Attempts to take a lock: a process that checks an owner holds its lock for a moment."""


class OwnerLock:
    """An exclusive lock on an instance folder. The kernel releases it when the process ends."""

    def __init__(self, folder: Path, file: OwnDescriptor) -> None:
        self.folder = folder
        self._held = OwnLock(file)

    @classmethod
    def take(cls, folder: Path, destination: str | None = None) -> OwnerLock | None:
        """Lock ``folder``; None if another process holds the lock or the folder does not exist.

        ``destination``: where the tape in it goes; None: where it went before.
        """
        path = folder / OWNER
        try:
            file = open_own(path, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if identity(file.number) != _identity_of(path):
                raise BlockingIOError(errno.EAGAIN, "the folder was removed meanwhile")
            text = _text(owner_destination(folder) if destination is None else destination)
            os.ftruncate(file.number, 0)
            os.pwrite(file.number, text, 0)
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

    def __init__(self, destination: str) -> None:
        self._destination = destination
        self._locks: dict[str, OwnerLock] = {}

    def take(self, folder: Path) -> None:
        """Create and lock an instance folder, once. OSError if that fails."""
        key = os.fspath(folder)
        for _ in range(TRIES):
            if key in self._locks:
                return
            make_folder(folder)
            lock = OwnerLock.take(folder, self._destination)
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
        return int(read_file(folder / OWNER).partition(b"\n")[0])
    except (OSError, ValueError):
        return None


def owner_destination(folder: Path) -> str:
    """Where the tape in ``folder`` goes; empty if that is not stated, as by earlier versions."""
    try:
        destination: Any = json.loads(read_file(folder / OWNER).partition(b"\n")[2])
    except (OSError, ValueError):
        return ""
    return destination if isinstance(destination, str) else ""


def _text(destination: str) -> bytes:
    return f"{os.getpid()}\n{json.dumps(destination)}\n".encode()
