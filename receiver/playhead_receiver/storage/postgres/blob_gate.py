"""A shared/exclusive lock among receivers: commits with blobs pass, a deletion of blobs blocks them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from playhead_receiver.storage.postgres.connections.locks import Key, lock
from playhead_receiver.storage.postgres.connections.reader import Pool


class BlobGate:
    """Any number of `one` at the same time, or a single `held`, among all processes of a store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @contextmanager
    def one(self) -> Generator[None]:
        """Shared: pass, after waiting while the gate is held."""
        with self._pool.one("BEGIN; " + lock("pg_advisory_xact_lock_shared", Key.BLOBS)) as connection:
            yield
            connection.execute("COMMIT")

    @contextmanager
    def held(self) -> Generator[None]:
        """Exclusive: wait until nobody is passing, then let nobody pass."""
        with self._pool.one("BEGIN; " + lock("pg_advisory_xact_lock", Key.BLOBS)) as connection:
            yield
            connection.execute("COMMIT")
