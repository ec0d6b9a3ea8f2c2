"""The audit log: which caller read, marked, exported or deleted what. No paths, headers or tokens."""

from __future__ import annotations

import time
from typing import Any, Literal, TypeAlias

import msgspec

from playhead_receiver.auth.database import AccessFile

ROWS_KEPT = 1_000_000
PRUNE_EVERY = 1024

Action: TypeAlias = Literal["read", "search", "export", "mark", "control", "delete"]


class Note(msgspec.Struct, frozen=True):
    """One line of the log."""

    number: int
    time_ns: int
    token: str
    """Id of the token; empty if none was needed."""
    name: str
    tenant: str
    action: str
    subject: str
    """A trace id, a trace id and a span id, or the name of a list."""


class Audit:
    """The audit log of a data folder; it keeps the last `ROWS_KEPT` lines."""

    def __init__(self, file: AccessFile) -> None:
        self._file = file

    def note(self, token: str, name: str, tenant: str, action: Action, subject: str) -> None:
        """Write a line. `StoreUnavailable` if that is impossible."""
        with self._file.writing() as db:
            db.execute(
                "INSERT INTO audit(time_ns, token, name, tenant, action, subject)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (time.time_ns(), token, name, tenant, action, subject),
            )
            last = db.last_insert_rowid()
            if last % PRUNE_EVERY == 0:
                db.execute("DELETE FROM audit WHERE number <= ?", (last - ROWS_KEPT,))

    def notes(self, tenant: str, before: int | None = None, limit: int = 100) -> list[Note]:
        """At most ``limit`` lines about a tenant's data, newest first, with numbers below ``before``."""
        last = (1 << 63) - 1 if before is None else before
        sql = (
            "SELECT number, time_ns, token, name, tenant, action, subject FROM audit"
            " WHERE tenant = ? AND number < ? ORDER BY number DESC LIMIT ?"
        )
        with self._file.reading() as db:
            rows: list[Any] = [] if db is None else list(db.execute(sql, (tenant, last, limit)))
        return [Note(*row) for row in rows]
