"""Empties write-ahead logs, which keep deleted content until they are emptied.

A log can be emptied only while no reader needs it, in this process or in another. To cut it holds the
writer, so it is first moved into the file, which holds no one, and is cut only after all was moved,
without waiting for a lock. A deletion tries that a few times; the housekeeper tries again on each turn.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import apsw

from playhead_core.errors import PlayheadError
from playhead_receiver.storage.sqlite.schema import BUSY_TIMEOUT_MS

TRIES = 5
"""How often a deletion tries: reads of the receiver itself take milliseconds."""
PAUSE_S = 0.02
MOST_BYTES = 32 * 1024 * 1024
"""Size of a log, held back by a reader for minutes, that a deletion leaves to the housekeeper."""


class Logs:
    """The logs of all databases of a store, and which of them may hold deleted content. Thread-safe."""

    def __init__(self, emptied: Mapping[Path, Callable[[], bool]], *, read_only: bool = False) -> None:
        """``emptied``: by path of the database, the function that empties its log, and returns whether.

        Make it before the databases are opened: a log that is there already may hold deleted content.
        """
        self._emptied = emptied
        self._full = set[Path]() if read_only else {path for path in emptied if log_bytes(path)}
        self._lock = threading.Lock()
        self._emptying = threading.Lock()

    @contextmanager
    def deleting(self) -> Generator[None]:
        """Context of a deletion, complete or failed: afterwards every log may hold deleted content."""
        try:
            yield
        finally:
            with self._lock:
                self._full |= self._emptied.keys()

    def empty(self) -> bool:
        """Empty the logs that may hold deleted content; return whether none does any more."""
        with self._emptying:
            return self._empty()

    def empty_soon(self) -> bool:
        """Do the same for a deletion, in a moment: try a few times, and leave large logs alone."""
        if not self._emptying.acquire(timeout=TRIES * PAUSE_S):
            return False
        try:
            for _ in range(TRIES - 1):
                if self._empty(MOST_BYTES):
                    return True
                time.sleep(PAUSE_S)
            return self._empty(MOST_BYTES)
        finally:
            self._emptying.release()

    def _empty(self, most_bytes: int = 1 << 62) -> bool:
        with self._lock:  # a deletion that comes meanwhile adds them again
            left, self._full = self._full, set[Path]()
        try:
            for path in list(left):
                if self._is_emptied(path, most_bytes):
                    left.remove(path)
        finally:
            with self._lock:
                self._full |= left
        return not self._full

    def _is_emptied(self, path: Path, most_bytes: int) -> bool:
        try:
            size = log_bytes(path)
            return not size or (size <= most_bytes and self._emptied[path]())
        except PlayheadError:
            return False  # the next try may find the disk or the file repaired


def log_bytes(database: Path) -> int:
    """The size of the log of a database; 0 if it has none."""
    try:
        return os.stat(f"{os.path.realpath(database)}-wal").st_size
    except OSError:
        return 0


def move_log(path: Path) -> bool:
    """Move the log of a database into its file; False if a reader prevents that. Commits continue."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return _move(connection)
    finally:
        connection.close()


def empty_log(connection: apsw.Connection) -> bool:
    """Move the log into the file and cut it; False if a reader prevents that. It waits for no lock."""
    connection.set_busy_timeout(0)
    try:
        if not _move(connection):
            return False
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    finally:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return True


def _move(connection: apsw.Connection) -> bool:
    connection.pragma("user_version")  # a connection that has read nothing does not see the log
    try:
        in_log, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except apsw.BusyError:
        return False  # another thread or process moves it
    return moved == in_log
