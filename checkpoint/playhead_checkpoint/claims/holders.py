"""Determines which processes are alive: each claiming process locks its own file until it ends.

A process id is not enough: it is reused, and has another meaning in another container.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from playhead_core.process.own_descriptors import OwnLock, open_own


class Holders:
    """The locks in ``folder``. Safe from any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = ""
        self._lock: OwnLock | None = None
        """Together with the name: the lock of this process."""

    @property
    def own(self) -> str:
        """The name of this process, under which it counts as alive until its end. `OSError`."""
        while not self._name:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = secrets.token_hex(16)
            held = open_own(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            try:
                fcntl.flock(held.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.stat(self._folder / name)
                os.write(held.number, b"\n")
            except (BlockingIOError, FileNotFoundError):
                held.close()  # another process has just removed it
            else:
                self._name, self._lock = name, OwnLock(held)
        return self._name

    def is_own(self, name: str) -> bool:
        """Whether ``name`` is the name of this process."""
        return name == self._name

    def sweep(self) -> None:
        """Remove the files of dead processes."""
        if self._folder.is_dir():
            for file in self._folder.iterdir():
                if not self.is_own(file.name):
                    self.lives(file.name)

    def lives(self, name: str) -> bool:
        """Whether another process with this name is alive. Removes the file of a dead one."""
        try:
            lock_file = os.open(self._folder / name, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            (self._folder / name).unlink(missing_ok=True)
            return False
        finally:
            os.close(lock_file)

    def close(self) -> None:
        """Release the name and the lock."""
        name, lock = self._name, self._lock
        self._name, self._lock = "", None
        if name:
            (self._folder / name).unlink(missing_ok=True)
        if lock is not None:
            lock.release()

    def forget(self) -> None:
        """In a forked child, forget the lock: it belongs to the parent."""
        lock = self._lock
        self._name, self._lock = "", None
        if lock is not None:
            lock.forget()
