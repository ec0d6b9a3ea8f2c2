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

from playhead_receiver.store.sqlite.schema import BUSY_TIMEOUT_MS
from playhead_semconv.errors import PlayheadError

TRIES = 5
"""How often a deletion tries: reads of the receiver itself take milliseconds."""
PAUSE_S = 0.02


class Logs:
    """The logs of all databases of a store, and which of them may hold deleted content. Thread-safe."""

    def __init__(self, emptied: Mapping[Path, Callable[[], bool]], *, read_only: bool = False) -> None:
        """``emptied``: by path of the database, the function that empties its log, and returns whether.

        Make it before the databases are opened: a log that is there already may hold deleted content.
        """
        self._emptied = emptied
        self._full = set[Path]() if read_only else {path for path in emptied if not is_empty(path)}
        self._lock = threading.Lock()

    @contextmanager
    def deleting(self) -> Generator[None]:
        """Context of a deletion, complete or failed: afterwards every log may hold deleted content."""
        try:
            yield
        finally:
            with self._lock:
                self._full = set(self._emptied)

    def empty(self, tries: int = 1) -> bool:
        """Empty the logs that may hold deleted content; return whether none does any more."""
        with self._lock:
            while True:
                self._full = {path for path in self._full if not self._empty(path)}
                tries -= 1
                if not self._full or not tries:
                    return not self._full
                time.sleep(PAUSE_S)

    def _empty(self, path: Path) -> bool:
        try:
            return is_empty(path) or self._emptied[path]()
        except PlayheadError:
            return False  # the next try may find the disk or the file repaired


def is_empty(database: Path) -> bool:
    """Whether a database has no log, or an empty one."""
    try:
        return not os.stat(f"{os.path.realpath(database)}-wal").st_size
    except OSError:
        return True


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
