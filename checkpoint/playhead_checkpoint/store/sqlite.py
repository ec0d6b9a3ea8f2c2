"""Checkpoints in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from playhead_checkpoint.sqlite_file import ERRORS, SqliteFile, empty_log, error_of
from playhead_checkpoint.store.deletion import ALL_COUNTED
from playhead_checkpoint.store.engine import Fresh, KnownNodes, Put, Row
from playhead_checkpoint.store.rows import Session
from playhead_checkpoint.store.sql import SqlCheckpoints
from playhead_checkpoint.tree.stored_nodes import compressed
from playhead_checkpoint.tree.types import TYPES, Types
from playhead_core.errors import StoreUnavailable

_SCHEMA: Final = """
CREATE TABLE node (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE TABLE uses (node INTEGER PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE checkpoint (
    seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE,
    run BLOB NOT NULL, span BLOB NOT NULL, kind TEXT NOT NULL, parent BLOB NOT NULL,
    time_ns INTEGER NOT NULL, labels TEXT NOT NULL, thread TEXT NOT NULL, name TEXT NOT NULL,
    size INTEGER NOT NULL, digest BLOB NOT NULL, packed BLOB NOT NULL
);
CREATE INDEX checkpoint_of_run ON checkpoint (run, seq) WHERE run <> x'';
CREATE INDEX checkpoint_of_thread ON checkpoint (thread, name) WHERE thread <> '';
CREATE TABLE note (
    id INTEGER PRIMARY KEY, checkpoint BLOB NOT NULL, key TEXT NOT NULL, packed BLOB NOT NULL,
    UNIQUE (checkpoint, key)
);
CREATE TABLE deletions (count INTEGER NOT NULL);
INSERT INTO deletions VALUES (0);
"""
_COUNTED: Final = f"""
ALTER TABLE uses RENAME TO use_count;
CREATE TABLE counted (checkpoint INTEGER NOT NULL, note INTEGER NOT NULL, node INTEGER NOT NULL);
INSERT INTO counted {ALL_COUNTED};
"""
_READ_AS_COUNTED: Final = (
    "CREATE TEMP VIEW use_count AS SELECT * FROM uses",
    f"CREATE TEMP VIEW counted (checkpoint, note, node) AS {ALL_COUNTED}",
)
"""Statements to read a file of version 1 that must not be changed."""
_FILE: Final = SqliteFile(0x70636B31, (_SCHEMA, _COUNTED))  # "pck1"
_INSERT_NODE: Final = "INSERT INTO node (digest, size, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_VACUUMED_PAGES: Final = 1024
"""Free pages returned to the file system at a time."""


class _Use:
    """Holds a connection for one thread. It is not a generator, because many small reads use it.

    ``depth``: number of nested transactions of this thread.
    """

    def __init__(
        self, path: Path, lock: threading.RLock, connection: Callable[[], sqlite3.Connection]
    ) -> None:
        self._path = path
        self._lock = lock
        self.connection = connection
        self.depth = 0

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            return self.connection()
        except BaseException as problem:
            self.__exit__(type(problem), problem, None)
            raise

    def end(self, whole: bool) -> None:
        """Commit the transaction, or roll it back unless ``whole``."""
        database = self.connection()
        try:
            if whole:
                database.execute("COMMIT")
        finally:
            if database.in_transaction:
                database.execute("ROLLBACK")

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        self._lock.release()
        if problem is not None and isinstance(problem, ERRORS):
            raise error_of(self._path, problem) from problem


class _Transaction:
    """One transaction; a nested one is part of the outer one."""

    def __init__(self, use: _Use, begin: str) -> None:
        self._use = use
        self._begin = begin

    def __enter__(self) -> sqlite3.Connection:
        use = self._use
        database = use.__enter__()
        use.depth += 1
        try:
            if use.depth == 1:
                database.execute(self._begin)
        except BaseException as problem:
            use.depth -= 1
            use.__exit__(type(problem), problem, None)
            raise
        return database

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        use = self._use
        use.depth -= 1
        try:
            if not use.depth:
                use.end(problem is None)
        except BaseException as other:
            problem = other
            raise
        finally:
            use.__exit__(kind, problem, trace)


class SqliteCheckpoints(SqlCheckpoints):
    """A `CheckpointStore` in one file (WAL, mode 0600), for any number of threads and processes.

    A put survives the death of the process; the last ones may be lost with the power
    (``synchronous="FULL"`` keeps those, for a sync of the disk each). ``read_only``: the file is there
    and is not written to.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        types: Types = TYPES,
        *,
        synchronous: str = "NORMAL",
        read_only: bool = False,
    ) -> None:
        super().__init__(types)
        if synchronous not in ("NORMAL", "FULL"):
            raise ValueError(f"synchronous is NORMAL or FULL, not {synchronous}")
        self._path = Path(path)
        self._synchronous = synchronous
        self._read_only = read_only
        self._use = _Use(self._path, self._lock, self._connection)
        self._open: sqlite3.Connection | None = None
        self._pid = 0
        self._holds_deleted = False
        """Whether the log still holds deleted content."""
        with self._using():
            pass

    # A connection

    def _connection(self) -> sqlite3.Connection:
        """Return the connection of this process. A connection inherited by a fork is not touched."""
        pid = os.getpid()
        if self._open is None or self._pid != pid:
            if self._pid == pid:
                raise StoreUnavailable(f"{self._path} is closed")
            if self._pid:
                self._known, self._deletions, self._use.depth = KnownNodes(), -1, 0
            self._open, self._pid = self._connected(), pid
        return self._open

    def _connected(self) -> sqlite3.Connection:
        if self._read_only:
            return _FILE.connect_reader(self._path, {1: _READ_AS_COUNTED})
        return _FILE.connect(self._path, "auto_vacuum=INCREMENTAL", f"synchronous={self._synchronous}")

    def _using(self) -> _Use:
        """Hold the connection for this thread; translate its errors."""
        return self._use

    def _reading(self) -> _Transaction:
        return _Transaction(self._use, "BEGIN")

    def _writing(self) -> _Transaction:
        return _Transaction(self._use, "BEGIN IMMEDIATE")

    def _at_once(self) -> _Use:
        return self._use

    # Only for files

    def copy_to(self, path: Path) -> None:
        """Copy a consistent state of the store into a new file, and sync it. Writers may continue."""
        with self._using() as database:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            copy = sqlite3.connect(path, isolation_level=None)
            try:
                database.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE").fetchone()
            finally:
                copy.close()
            with open(path, "rb") as file:
                os.fsync(file.fileno())

    def stored_bytes(self) -> int:
        """Return the size of the file in bytes, without free pages."""
        with self._using() as database:
            pages, free, size = (
                database.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
            return (pages - free) * size

    def give_back(self) -> None:
        """Return some free pages to the file system; later puts use the rest."""
        with self._using() as database:
            if database.execute("PRAGMA freelist_count").fetchone()[0]:  # `execute` would free one page
                database.executescript(f"PRAGMA incremental_vacuum({_VACUUMED_PAGES})")

    def empty_log(self) -> bool:
        """Empty the log, which holds deleted content; False if a reader needs it.

        In this case the next write tries again.
        """
        with self._using() as database:
            self._holds_deleted = not empty_log(database)
            return not self._holds_deleted

    # Differences from other databases

    def write(self, put: Put) -> Row:
        """Write a row and its nodes; see `CheckpointEngine.write`."""
        stored = super().write(put)
        if self._holds_deleted and not self._use.depth:
            self.empty_log()
        return stored

    def _insert(self, database: Session, fresh: Fresh) -> None:
        for digest, node in fresh.items():
            database.execute(_INSERT_NODE, (digest, len(node.data), compressed(node.data)))

    def _insert_row(self, database: Session, statement: str, values: Sequence[Any]) -> int | None:
        done = database.execute(statement, values)
        return done.lastrowid if done.rowcount else None

    def _tidy(self) -> None:
        self.give_back()
        self.empty_log()

    def _broken(self, database: Session) -> Iterator[str]:
        for (line,) in database.execute("PRAGMA integrity_check"):
            if line != "ok":
                yield str(line)

    def close(self) -> None:
        """Close the file. Idempotent."""
        with self._lock:
            if self._open is not None and self._pid == os.getpid():
                self._open.close()
                self._open = None
