"""The claims that a receiver keeps for agents on any machine: in the tables beside its checkpoints.

A receiver cannot see whether a process on another machine lives. So an attempt has a lease, which its
process renews as long as the effect goes on; when the lease is over, the outcome is unknown until the
attempt says it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from playhead_checkpoint.claims.messages import (
    AttemptEnded,
    AttemptsGoOn,
    ClaimAsked,
    Claimed,
    Said,
)

if TYPE_CHECKING:
    from playhead_checkpoint.store.rows import Session
    from playhead_checkpoint.store.sql import SqlCheckpoints

LEASE_S: Final = 30.0
"""Seconds for which an attempt counts as under way after it was heard of last."""
KEPT_NS: Final = 90 * 86_400 * 1_000_000_000
"""How long a claim is kept after it was made or ended."""

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
    """Claims in the database of checkpoints; any number of receivers may have them at once.

    Each change is one transaction, and is on disk when a method returns. Methods raise `StoreError`.
    """

    def __init__(self, store: SqlCheckpoints) -> None:
        self._store = store
        with store.transaction() as database:
            for statement in _TABLES:
                database.execute(statement)
            database.execute("DELETE FROM claim WHERE time_ns < ?", (time.time_ns() - KEPT_NS,))

    def answer(self, said: Said) -> Claimed:
        """The answer to what an agent says."""
        with self._store.transaction() as database:
            if isinstance(said, ClaimAsked):
                return self._claim(database, said)
            if isinstance(said, AttemptsGoOn):
                self._renew(database, said)
            elif said.outcome == "not done":
                database.execute("DELETE FROM claim WHERE attempt = ?", (said.attempt,))
            else:
                self._end(database, said)
        return Claimed("done")

    def delete(self, lineages: Iterable[str]) -> None:
        """Delete what lineages have claimed; it may be done again."""
        with self._store.transaction() as database:
            rows = [(lineage,) for lineage in lineages]
            database.executemany("DELETE FROM claim WHERE lineage = ?", rows)

    def _claim(self, database: Session, asked: ClaimAsked) -> Claimed:
        question = (
            "SELECT name, attempt, until_ns, state, result, error FROM claim"
            " WHERE lineage = ? AND key = ?"
        )
        row: _Row | None = database.execute(question, (asked.lineage, asked.key)).fetchone()
        now_ns = time.time_ns()
        if row is not None:
            known, attempt, until_ns, state, result, error = row
            ours = attempt == asked.attempt
            if state == _DONE:
                return Claimed("done", attempt, result, known)
            if state == _OPEN and until_ns > now_ns and not ours:
                return Claimed("busy", attempt, None, known)
            if attempt != asked.instead_of and not ours:
                return Claimed("unknown", attempt, None, known, error)
        database.execute("DELETE FROM claim WHERE lineage = ? AND key = ?", (asked.lineage, asked.key))
        until_ns = now_ns + int(LEASE_S * 1e9)
        values: Any = (
            asked.lineage, asked.key, asked.name, asked.attempt, until_ns, _OPEN, now_ns
        )  # fmt: skip
        database.execute(_INSERT, values)
        return Claimed("ours", asked.attempt, None, asked.name)

    @staticmethod
    def _renew(database: Session, said: AttemptsGoOn) -> None:
        until_ns = time.time_ns() + int(LEASE_S * 1e9)
        rows = [(until_ns, attempt, _OPEN) for attempt in said.attempts]
        database.executemany("UPDATE claim SET until_ns = ? WHERE attempt = ? AND state = ?", rows)

    @staticmethod
    def _end(database: Session, said: AttemptEnded) -> None:
        state = _DONE if said.outcome == "done" else _UNKNOWN
        database.execute(
            "UPDATE claim SET state = ?, result = ?, error = ?, time_ns = ? WHERE attempt = ?",
            (state, said.result, said.error, time.time_ns(), said.attempt),
        )
