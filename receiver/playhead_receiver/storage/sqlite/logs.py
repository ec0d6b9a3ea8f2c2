"""Write-ahead logs: moved into the file by a thread, and emptied after deletions.

A log keeps deleted content until it is emptied, which is possible only while no reader needs it, in this
process or in another. Cutting the log blocks the writer. Therefore the log is first moved into the file,
which blocks nothing; it is cut only after all of it was moved, without waiting for a lock. After a
deletion that is tried for a moment; background maintenance tries again in each round.
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

SOON_S = 0.25
"""Maximum time of attempts after a deletion: reads of the receiver itself take milliseconds."""
PAUSE_S = 0.02
MOST_BYTES = 8 * 1024 * 1024
"""Size of a log, held back by a reader, that a deletion leaves to background maintenance."""

DUE_PAGES = 2000
"""Pages in the log above which the thread moves it."""
AT_MOST_PAGES = 8000
"""Pages above which the writer moves the log itself: without a pause in the writing it never ends.

While a reader holds pages back, the writer leaves that to the thread: after minutes these may be a
hundred times more, and commits would wait for them.
"""


class Logs:
    """The logs of all databases of a store, and which of them may hold deleted content. Thread-safe."""

    def __init__(self, emptied: Mapping[Path, Callable[[], bool]], *, read_only: bool = False) -> None:
        """``emptied``: by path of the database, the function that empties its log, and returns whether.

        Make it before the databases are opened: a log that is there already may hold deleted content.
        """
        self._emptied = emptied
        self._full = set[Path]() if read_only else {path for path in emptied if log_bytes(path)}
        self._held = frozenset[Path]()
        """Logs that the last attempt could not empty: another program may read them for hours."""
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
        """Do the same for at most `SOON_S`; skip large logs.

        A log that a reader held at the last attempt is tried only once.
        """
        until_s = time.monotonic() + SOON_S
        if not self._emptying.acquire(timeout=SOON_S):
            return False
        try:
            before = self._held
            while not self._empty(MOST_BYTES):
                if self._held <= before or time.monotonic() > until_s:
                    return False
                time.sleep(PAUSE_S)
            return True
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
                self._held = frozenset(left)
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


class LogMover:
    """Moves the log into the file, in a thread with its own connection, so that commits do not wait.

    If the thread fails, the writer moves the log.
    """

    def __init__(self, path: Path, writer: apsw.Connection) -> None:
        self._path = path
        self._due = threading.Event()
        self._closed = False
        self._held_back = False
        """Whether a reader kept the last attempt from moving the whole log."""
        self._thread = threading.Thread(target=self._run, name="playhead-checkpoints", daemon=True)
        self._thread.start()
        writer.set_wal_hook(self._committed)

    def close(self) -> None:
        """Stop the thread. Idempotent."""
        self._closed = True
        self._due.set()
        self._thread.join()

    def _committed(self, writer: apsw.Connection, _: str, pages: int) -> int:
        """SQLite's hook after each commit; ``pages``: the length of the log."""
        if pages > AT_MOST_PAGES and not self._held_back:
            try:
                self._move(writer)
            except apsw.Error:
                pass  # the log grows, and the next commit tries again
        elif pages > DUE_PAGES:
            self._due.set()
        return apsw.SQLITE_OK

    def _run(self) -> None:
        connection: apsw.Connection | None = None
        while True:
            self._due.wait()
            self._due.clear()
            if self._closed:
                break
            try:
                if connection is None:
                    connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
                self._move(connection)
            except apsw.Error:
                self._held_back = False  # the writer does it at `AT_MOST_PAGES`
        if connection is not None:
            connection.close()

    def _move(self, connection: apsw.Connection) -> None:
        in_log, moved = connection.wal_checkpoint()
        self._held_back = moved < in_log
