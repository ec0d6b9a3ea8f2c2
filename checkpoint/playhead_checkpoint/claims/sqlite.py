"""Claims in a data folder: one row for each effect, in one SQLite file."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
import weakref
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from playhead_checkpoint.claims.holders import Holders
from playhead_checkpoint.sqlite_file import ERRORS, SqliteFile, error_of
from playhead_core.claims import Claim

FILE: Final = "claims.sqlite"
HOLDERS: Final = "claimers"
"""Folder of the locks of living processes."""

KEPT_NS: Final = 90 * 86_400 * 1_000_000_000
"""How long a claim is kept after its start or end."""

_OPEN, _DONE, _UNKNOWN = range(3)

_SCHEMA: Final = """
CREATE TABLE claim (
    lineage TEXT NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL,
    attempt BLOB NOT NULL UNIQUE, holder TEXT NOT NULL, state INTEGER NOT NULL,
    result BLOB, error TEXT NOT NULL, time_ns INTEGER NOT NULL,
    PRIMARY KEY (lineage, key)
) STRICT;
CREATE INDEX claim_by_time ON claim (time_ns)
"""

_FILE: Final = SqliteFile(0x70636C31, (_SCHEMA,))  # "pcl1"

_Row: TypeAlias = tuple[str, bytes, str, int, bytes | None, str]


class SqliteClaims:
    """`playhead_core.claims.Claims` in a folder, for any number of processes on one machine.

    Claims survive a power loss: each change waits for the disk. Files have mode 0600.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Open the claims. `StoreUnavailable` if that is not possible."""
        self._path = Path(folder) / FILE
        self._holders = Holders(Path(folder) / HOLDERS)
        self._lock = threading.Lock()
        self._going: set[bytes] = set()
        """The open attempts of this process."""
        _OPENED.add(self)
        with self._changing() as database:
            self._holders.sweep()
            database.execute("DELETE FROM claim WHERE time_ns < ?", (time.time_ns() - KEPT_NS,))

    def claim(self, lineage: str, key: str, name: str, instead_of: bytes = b"") -> Claim:
        """See `Claims.claim`."""
        with self._changing() as database:
            row: _Row | None = database.execute(
                "SELECT name, attempt, holder, state, result, error FROM claim"
                " WHERE lineage = ? AND key = ?",
                (lineage, key),
            ).fetchone()
            if row is not None:
                known, attempt, holder, state, result, error = row
                if state == _DONE:
                    return Claim("done", attempt, result, known)
                if state == _OPEN and self._goes_on(attempt, holder):
                    return Claim("busy", attempt, None, known)
                if attempt != instead_of:
                    return Claim("unknown", attempt, None, known, error)
            ours = secrets.token_bytes(16)
            database.execute(
                "INSERT OR REPLACE INTO claim VALUES (?, ?, ?, ?, ?, ?, NULL, '', ?)",
                (lineage, key, name, ours, self._holders.own, _OPEN, time.time_ns()),
            )
            self._going.add(ours)
            return Claim("ours", ours, None, name)

    def done(self, attempt: bytes, result: bytes | None) -> None:
        """See `Claims.done`."""
        self._end(attempt, _DONE, result)

    def failed(self, attempt: bytes, error: str) -> None:
        """See `Claims.failed`."""
        self._end(attempt, _UNKNOWN, None, error)

    def give_back(self, attempt: bytes) -> None:
        """See `Claims.give_back`."""
        with self._ending(attempt) as database:
            database.execute("DELETE FROM claim WHERE attempt = ?", (attempt,))

    def delete(self, lineage: str) -> int:
        """Delete the claims of a lineage; its effects may be repeated. Returns the number of claims."""
        with self._changing() as database:
            return database.execute("DELETE FROM claim WHERE lineage = ?", (lineage,)).rowcount

    def close(self) -> None:
        """What this process has claimed and not ended is unknown from now on."""
        with self._lock:
            self._holders.close()

    def forget(self) -> None:
        """In the child of a fork: the lock is the parent's, and is not touched."""
        self._lock = threading.Lock()
        self._going = set()
        self._holders.forget()

    def _goes_on(self, attempt: bytes, holder: str) -> bool:
        """Whether an attempt that has not said how it ended may still say so."""
        return attempt in self._going if self._holders.is_own(holder) else self._holders.lives(holder)

    def _end(self, attempt: bytes, state: int, result: bytes | None, error: str = "") -> None:
        with self._ending(attempt) as database:
            database.execute(
                "UPDATE claim SET state = ?, result = ?, error = ?, time_ns = ? WHERE attempt = ?",
                (state, result, error, time.time_ns(), attempt),
            )

    @contextmanager
    def _ending(self, attempt: bytes) -> Generator[sqlite3.Connection, None, None]:
        """The transaction that ends an attempt; where it fails, the attempt is over all the same."""
        try:
            with self._changing() as database:
                yield database
                self._going.discard(attempt)  # under the lock: who asks meanwhile sees the outcome
        finally:
            self._going.discard(attempt)

    @contextmanager
    def _changing(self) -> Generator[sqlite3.Connection, None, None]:
        """A transaction, for this thread alone; its errors as those of playhead.

        The file is open for the transaction only. SQLite writes by number, and the program may close
        numbers that it did not open and use them for files of its own.
        """
        with self._lock:
            try:
                with closing(_FILE.connect(self._path, "synchronous=FULL")) as database:
                    database.execute("BEGIN IMMEDIATE")
                    yield database
                    database.execute("COMMIT")
            except ERRORS as problem:
                raise error_of(self._path, problem) from problem


_OPENED: Final[weakref.WeakSet[SqliteClaims]] = weakref.WeakSet()


def _in_child() -> None:
    for one in list(_OPENED):
        one.forget()


os.register_at_fork(after_in_child=_in_child)
