"""Checkpoints the write-ahead log in a separate thread, so that commits do not wait for it."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw

DUE_PAGES = 2000
"""Pages in the log above which a checkpoint begins."""
AT_MOST_PAGES = 8000
"""Pages above which the writer checkpoints itself: a log that is written all the time never ends.

It leaves that to the thread while a reader holds pages back: after minutes these may be a hundred times
more, and commits would wait for them.
"""


class Checkpoints:
    """The checkpoint thread, with a connection of its own. If it fails, the writer does the work."""

    def __init__(self, path: Path, writer: apsw.Connection) -> None:
        self._path = path
        self._due = threading.Event()
        self._closed = False
        self._held_back = False
        """Whether a reader kept the last checkpoint from moving the whole log."""
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
