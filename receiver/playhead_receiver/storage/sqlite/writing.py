"""The writing connection to an SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.sql.writing.rows import RowWriter
from playhead_receiver.storage.sqlite.database import SqliteDb
from playhead_receiver.storage.sqlite.logs import LogMover, empty_log
from playhead_receiver.storage.sqlite.schema import open_writer, store_errors
from playhead_receiver.storage.sqlite.tables import SqliteTables
from playhead_receiver.storage.values.stored import Receipt
from playhead_receiver.storage.writing.prepare import Prepared
from playhead_receiver.storage.writing.recent_bundles import RecentBundles
from playhead_receiver.system.durable_files import FsyncCheck

T = TypeVar("T")


class SqliteBackend:
    """Writes batches and executes jobs, each in a transaction. Used by one thread."""

    away = False
    """Always False: a file cannot be temporarily unreachable."""

    def __init__(self, path: Path, blobs: Blobs, recent: RecentBundles) -> None:
        """``recent``: gets the bundles that were committed."""
        self.name = str(path)
        self._path = path
        self._witness = FsyncCheck(path.parent)
        with store_errors(path):
            self.db = open_writer(path)
            self._rows = RowWriter(SqliteTables(self.db), blobs, recent)
            self._rows.begin()
        self._log_mover = LogMover(path, self.db)
        self.position = self._rows.position

    def write(self, batches: Sequence[Prepared]) -> list[Receipt]:
        """Write all batches, or none."""

        def write(_: SqliteDb) -> list[Receipt]:
            self._rows.begin()
            return self._rows.write(batches)

        try:
            with store_errors(self._path):
                receipts = self._transact(write)
        except BaseException:
            self._rows.forget()
            raise
        self.position = self._rows.position
        self._rows.committed()
        return receipts

    def transact(self, action: Callable[[SqliteDb], T], forgets: bool) -> T:
        """Execute ``action`` in a transaction. ``forgets``: it changes rows that are remembered here."""
        try:
            with store_errors(self._path):
                return self._transact(action)
        finally:
            if forgets:
                self._rows.forget()

    def empty_log(self) -> bool:
        """Move the log into the file and empty it; False if a reader needs it."""
        with store_errors(self._path):
            return empty_log(self.db)

    def close(self) -> None:
        """Close the connection."""
        self._log_mover.close()
        self._witness.close()
        self.db.close()

    def _transact(self, action: Callable[[SqliteDb], T]) -> T:
        self._witness.prepare()
        self.db.execute("BEGIN IMMEDIATE")
        try:
            result = action(self.db)
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise
        self._witness.confirm()
        return result
