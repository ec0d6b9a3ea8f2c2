"""Claims of a receiver for agents on any machine, in the database of its checkpoints.

A receiver cannot see whether a process on another machine is alive. So an attempt has a lease, which its
process renews until the effect is over. When the lease expires, the outcome is unknown until the attempt
reports it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from playhead_checkpoint.claims.messages import (
    AttemptEnded,
    AttemptsRenewed,
    Claimed,
    ClaimMessage,
    ClaimRequest,
)

if TYPE_CHECKING:
    from playhead_checkpoint.store.rows import Session
    from playhead_checkpoint.store.sql import SqlCheckpoints

LEASE_S: Final = 30.0
"""Seconds for which an attempt counts as in progress after its last message."""
KEPT_NS: Final = 90 * 86_400 * 1_000_000_000
"""How long a claim is kept after its start or end."""

_OPEN, _DONE, _UNKNOWN = range(3)
_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS claim (
        lineage text NOT NULL, key text NOT NULL, name text NOT NULL, attempt bytea NOT NULL UNIQUE,
        until_ns bigint NOT NULL, state integer NOT NULL, result bytea, error text NOT NULL,
        time_ns bigint NOT NULL, PRIMARY KEY (lineage, key)
    )""",
    "CREATE INDEX IF NOT EXISTS claim_by_time ON claim (time_ns)",
)
_INSERT: Final = "INSERT INTO claim VALUES (?, ?, ?, ?, ?, ?, NULL, '', ?)"
_Row: TypeAlias = tuple[str, bytes, int, int, bytes | None, str]


class LeasedClaims:
    """Claims in the database of checkpoints; any number of receivers may use it concurrently.

    Each change is one transaction, on disk when the method returns. Methods raise `StoreError`.
    """

    def __init__(self, store: SqlCheckpoints) -> None:
        self._store = store
        with store.transaction() as database:
            for statement in _TABLES:
                database.execute(statement)
            database.execute("DELETE FROM claim WHERE time_ns < ?", (time.time_ns() - KEPT_NS,))

    def answer(self, message: ClaimMessage) -> Claimed:
        """Process a message of an agent and return the answer."""
        with self._store.transaction() as database:
            if isinstance(message, ClaimRequest):
                return self._claim(database, message)
            if isinstance(message, AttemptsRenewed):
                self._renew(database, message)
            elif message.outcome == "not done":
                database.execute("DELETE FROM claim WHERE attempt = ?", (message.attempt,))
            else:
                self._end(database, message)
        return Claimed("done")

    def delete(self, lineages: Iterable[str]) -> None:
        """Delete the claims of lineages; their effects may be repeated."""
        with self._store.transaction() as database:
            rows = [(lineage,) for lineage in lineages]
            database.executemany("DELETE FROM claim WHERE lineage = ?", rows)

    def _claim(self, database: Session, request: ClaimRequest) -> Claimed:
        query = (
            "SELECT name, attempt, until_ns, state, result, error FROM claim"
            " WHERE lineage = ? AND key = ?"
        )
        row: _Row | None = database.execute(query, (request.lineage, request.key)).fetchone()
        now_ns = time.time_ns()
        if row is not None:
            known, attempt, until_ns, state, result, error = row
            ours = attempt == request.attempt
            if state == _DONE:
                return Claimed("done", attempt, result, known)
            if state == _OPEN and until_ns > now_ns and not ours:
                return Claimed("busy", attempt, None, known)
            if attempt != request.instead_of and not ours:
                return Claimed("unknown", attempt, None, known, error)
        database.execute(
            "DELETE FROM claim WHERE lineage = ? AND key = ?", (request.lineage, request.key)
        )
        until_ns = now_ns + int(LEASE_S * 1e9)
        values: Any = (
            request.lineage, request.key, request.name, request.attempt, until_ns, _OPEN, now_ns
        )  # fmt: skip
        database.execute(_INSERT, values)
        return Claimed("ours", request.attempt, None, request.name)

    @staticmethod
    def _renew(database: Session, message: AttemptsRenewed) -> None:
        until_ns = time.time_ns() + int(LEASE_S * 1e9)
        rows = [(until_ns, attempt, _OPEN) for attempt in message.attempts]
        database.executemany("UPDATE claim SET until_ns = ? WHERE attempt = ? AND state = ?", rows)

    @staticmethod
    def _end(database: Session, message: AttemptEnded) -> None:
        state = _DONE if message.outcome == "done" else _UNKNOWN
        database.execute(
            "UPDATE claim SET state = ?, result = ?, error = ?, time_ns = ? WHERE attempt = ?",
            (state, message.result, message.error, time.time_ns(), message.attempt),
        )
