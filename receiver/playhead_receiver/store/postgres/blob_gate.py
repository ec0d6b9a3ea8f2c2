"""Commits that refer to blobs pass, of any receiver; now and then somebody deletes some."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from playhead_receiver.store.postgres.connections.locks import Key, lock
from playhead_receiver.store.postgres.connections.reader import Pool


class BlobGate:
    """Many `one` at once, or a single `held`: among all processes that have the same store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @contextmanager
    def one(self) -> Generator[None]:
        """Pass; wait while the gate is held."""
        with self._pool.one("BEGIN; " + lock("pg_advisory_xact_lock_shared", Key.BLOBS)) as connection:
            yield
            connection.execute("COMMIT")

    @contextmanager
    def held(self) -> Generator[None]:
        """Let nobody pass; begins when those that are passing are through."""
        with self._pool.one("BEGIN; " + lock("pg_advisory_xact_lock", Key.BLOBS)) as connection:
            yield
            connection.execute("COMMIT")
