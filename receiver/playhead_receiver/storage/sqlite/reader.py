"""Connections that read an SQLite file."""

from __future__ import annotations

import queue
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from playhead_core.errors import StoreUnavailable
from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.sqlite.database import SqliteDb
from playhead_receiver.storage.sqlite.schema import UNUSABLE, open_reader, unavailable


class SqliteReader(SqlReader):
    """Reads from any thread, each read with a connection of its own."""

    def __init__(self, path: Path, blobs: Blobs) -> None:
        super().__init__(blobs)
        self._path = path
        self._idle: queue.LifoQueue[SqliteDb] = queue.LifoQueue()
        self._closed = False

    def close(self) -> None:
        """Close idle connections now, and the others when they are returned. Idempotent."""
        self._closed = True
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    @contextmanager
    def connection(self) -> Generator[SqliteDb]:
        """A connection whose reads in the ``with`` block all see one snapshot of the store."""
        if self._closed:
            raise StoreUnavailable(f"the store {self._path} is closed")
        try:
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                connection = open_reader(self._path)
            try:
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("COMMIT")
            finally:
                if self._closed or connection.filename == "":
                    connection.close()
                else:
                    self._idle.put(connection)
        except UNUSABLE as problem:
            raise unavailable(self._path, problem) from problem
