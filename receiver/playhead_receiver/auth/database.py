"""The file of tokens and audit log, next to the store. Any process may write to it at any time."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from playhead_receiver.storage.sqlite.schema import BUSY_TIMEOUT_MS, store_errors
from playhead_receiver.system.durable_files import create_database

FILE = "access.sqlite"

TABLES = """
CREATE TABLE IF NOT EXISTS token(
    id TEXT PRIMARY KEY, name TEXT NOT NULL, tenant TEXT NOT NULL, scopes TEXT NOT NULL,
    digest BLOB NOT NULL, created_ns INTEGER NOT NULL, expires_ns INTEGER, revoked_ns INTEGER);
CREATE TABLE IF NOT EXISTS token_use(id TEXT PRIMARY KEY, used_ns INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS audit(
    number INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, token TEXT NOT NULL, name TEXT NOT NULL,
    tenant TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL);
"""


class AccessFile:
    """``<data_dir>/access.sqlite``, created at the first write. Safe from any thread."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FILE
        self._db: apsw.Connection | None = None
        self._lock = threading.Lock()

    @contextmanager
    def reading(self) -> Generator[apsw.Connection | None]:
        """The connection; None while nothing was ever written. `StoreUnavailable`."""
        with self._lock, store_errors(self.path):
            yield self._open() if self._db is not None or self.path.exists() else None

    @contextmanager
    def writing(self) -> Generator[apsw.Connection]:
        """The connection, in a transaction. `StoreUnavailable`."""
        with self._lock, store_errors(self.path):
            db = self._open()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def copy_to(self, folder: Path) -> None:
        """Copy a snapshot of it into ``folder``, which must not have one yet. `StoreUnavailable`."""
        with self.reading() as db:
            if db is None:
                return
            create_database(folder / FILE)
            copy = apsw.Connection(str(folder / FILE))
            with copy.backup("main", db, "main") as going:
                going.step()
            copy.pragma("journal_mode", "delete")
            copy.close()

    def add_from(self, folder: Path) -> None:
        """Add the content of a copy in ``folder``: its tokens, except those with known ids, and its log.

        `StoreUnavailable`.
        """
        if not (folder / FILE).exists():
            return
        with store_errors(folder / FILE):
            copy = apsw.Connection(str(folder / FILE), flags=apsw.SQLITE_OPEN_READONLY)
            tokens = list(copy.execute("SELECT * FROM token"))
            notes = list(copy.execute("SELECT * FROM audit ORDER BY number"))
            copy.close()
        with self.writing() as db:
            db.executemany("INSERT OR IGNORE INTO token VALUES (?, ?, ?, ?, ?, ?, ?, ?)", tokens)
            db.executemany(
                "INSERT INTO audit(time_ns, token, name, tenant, action, subject)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [note[1:] for note in notes],
            )

    def close(self) -> None:
        """Close the connection. Idempotent."""
        with self._lock:
            db, self._db = self._db, None
            if db is not None:
                db.close()

    def _open(self) -> apsw.Connection:
        if self._db is None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            create_database(self.path)
            db = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
            db.set_busy_timeout(BUSY_TIMEOUT_MS)
            db.pragma("journal_mode", "wal")
            db.pragma("synchronous", "normal")
            db.execute(TABLES)
            self._db = db
        return self._db
