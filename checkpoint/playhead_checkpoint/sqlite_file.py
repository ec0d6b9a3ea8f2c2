"""A SQLite file of this room: made for its owner alone, opened in WAL mode, and known by its marks."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from playhead_core.errors import CorruptTape, PlayheadError, StoreUnavailable
from playhead_core.process.interpreter_threads import Bell, now_s

WAIT_S: Final = 60.0
"""Seconds for which another process may hold the file."""
_POLL_S: Final = 0.002


ERRORS: Final = (sqlite3.Error, OSError, UnicodeDecodeError)
"""What SQLite raises. The last: its message quotes a damaged file, and Python cannot decode it."""


class SqliteFile(NamedTuple):
    """The marks and the schema of such a file."""

    application: int
    """``application_id``: whose file it is."""
    schemas: Sequence[str]
    """For each version the statements, each ending in ``;`` and a new line, that make one of a file of
    the version before, or of an empty file. ``user_version`` is their number."""

    def connect(self, path: Path, *pragmas: str) -> sqlite3.Connection:
        """Open the file, and make it where it is not there (mode 0600), without transactions of its own.

        ``pragmas``: set besides those that every file has. `StoreUnavailable` for the file of something
        else or of a later version; OSError and `sqlite3.Error`, for which there is `error_of`.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Of a file that is there, to close it would take the locks of the connections that this process
        # has to it: another process that closes it would take itself for the last, and remove its log.
        with suppress(FileExistsError):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            os.close(os.open(os.path.realpath(path), flags, 0o600))
        found = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
        try:
            for line in (*pragmas, "secure_delete=ON", "trusted_schema=OFF"):
                found.execute(f"PRAGMA {line}")
            _turn_log_on(found)
            self._migrate(found, path)
        except BaseException:
            found.close()
            raise
        return found

    def connect_reader(
        self, path: Path, older: Mapping[int, Sequence[str]] | None = None
    ) -> sqlite3.Connection:
        """Open a file that is there, for reading alone; else as `connect`.

        ``older``: statements for files of these versions, which are not brought up to the latest.
        """
        address = f"{path.absolute().as_uri()}?mode=ro"
        found = sqlite3.connect(
            address, timeout=WAIT_S, isolation_level=None, check_same_thread=False, uri=True
        )
        try:
            found.execute("PRAGMA trusted_schema=OFF")
            version = self._version(found, path)
            if not version:
                raise StoreUnavailable(f"{path} holds nothing yet")
            for statement in (older or {}).get(version, ()):
                found.execute(statement)
        except BaseException:
            found.close()
            raise
        return found

    def _migrate(self, database: sqlite3.Connection, path: Path) -> None:
        if self._version(database, path) == len(self.schemas):
            return
        database.execute("BEGIN IMMEDIATE")
        version = self._version(database, path)
        if not version:
            if database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                raise StoreUnavailable(f"{path} is a database of something else")
            database.execute(f"PRAGMA application_id={self.application}")
        for statement in "".join(self.schemas[version:]).split(";\n"):
            database.execute(statement)
        database.execute(f"PRAGMA user_version={len(self.schemas)}")
        database.execute("COMMIT")

    def _version(self, database: sqlite3.Connection, path: Path) -> int:
        """The version of the schema that is there, 0: none."""
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if not version:
            return 0
        (application,) = database.execute("PRAGMA application_id").fetchone()
        if application != self.application:
            raise StoreUnavailable(f"{path} is a database of something else")
        if version > len(self.schemas):
            raise StoreUnavailable(f"{path} was written by a later version")
        return version


def _turn_log_on(database: sqlite3.Connection) -> None:
    """Turn WAL mode on. Where another process is just about to do so, SQLite does not wait by itself."""
    until_s = now_s() + WAIT_S
    while True:
        try:
            database.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or now_s() > until_s:
                raise
        Bell().wait(_POLL_S)


def empty_log(database: sqlite3.Connection) -> bool:
    """Move the write-ahead log into the file and cut it; False if a reader prevents that.

    It waits for no lock. To cut the log holds all writers, so it is tried only after all of it was
    moved, which holds none.
    """
    database.execute("PRAGMA busy_timeout=0").fetchall()
    database.execute("PRAGMA user_version").fetchone()  # before it has read, it does not see the log
    try:
        busy, in_log, moved = database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if busy or moved < in_log:
            return False
        return not database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        database.execute(f"PRAGMA busy_timeout={int(WAIT_S * 1000)}").fetchall()


def empty_log_of(path: Path) -> bool:
    """Do the same with a connection of its own. `StoreUnavailable`, `CorruptTape`."""
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", isolation_level=None, uri=True)
        try:
            return empty_log(database)
        finally:
            database.close()
    except sqlite3.Error as problem:
        raise error_of(path, problem) from problem


def error_of(path: Path, problem: BaseException) -> PlayheadError:
    """The error of playhead for one of `ERRORS`: `CorruptTape` for damage, else `StoreUnavailable`."""
    damaged = isinstance(problem, sqlite3.DatabaseError | UnicodeDecodeError)
    if damaged and not isinstance(problem, sqlite3.OperationalError):
        return CorruptTape(f"{path} is damaged", cause=str(problem))
    return StoreUnavailable(f"{path} cannot be used", cause=str(problem))
