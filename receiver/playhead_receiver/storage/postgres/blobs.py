"""Blobs in PostgreSQL: a table of bytes, the list of object stores, and a lock against deletions."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from blake3 import blake3

from playhead_core.errors import CorruptTape, StoreError
from playhead_receiver.storage.postgres.reader import Key, Pool, lock


class BlobTable:
    """Bytes by their BLAKE3 digest. Each put is a transaction of its own."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def put(self, data: bytes) -> bytes:
        """Keep ``data`` and return its digest. The blob is durable when this returns."""
        digest = blake3(data).digest()
        if not self.has(digest):
            self._ask("INSERT INTO blob VALUES (%s, %s) ON CONFLICT DO NOTHING", digest, data)
        return digest

    def get(self, digest: bytes) -> bytes:
        """The verified bytes of a blob. `StoreError` if it is missing, `CorruptTape` if damaged."""
        found = self._ask("SELECT data FROM blob WHERE digest = %s", digest)
        if not found:
            raise StoreError(f"blob {digest.hex()[:16]} is not in the store")
        data: bytes = found[0][0]
        if blake3(data).digest() != digest:
            raise CorruptTape(f"blob {digest.hex()[:16]} differs from its digest")
        return data

    def has(self, digest: bytes) -> bool:
        """Whether the blob exists."""
        return bool(self._ask("SELECT 1 FROM blob WHERE digest = %s", digest))

    def delete(self, digest: bytes) -> None:
        """Delete a blob. No-op if it does not exist."""
        self._ask("DELETE FROM blob WHERE digest = %s", digest)

    def size_bytes(self, digest: bytes) -> int:
        """Length of a blob in bytes. `StoreError` if it does not exist."""
        found = self._ask("SELECT length(data) FROM blob WHERE digest = %s", digest)
        if not found:
            raise StoreError(f"blob {digest.hex()[:16]} is not in the store")
        return found[0][0]

    def __iter__(self) -> Iterator[bytes]:
        """The digests of all blobs, ascending."""
        return (row[0] for row in self._ask("SELECT digest FROM blob ORDER BY digest"))

    def _ask(self, sql: str, *values: Any) -> list[Any]:
        with self._pool.one() as connection, connection.cursor(binary=True) as cursor:
            cursor.execute(sql, values)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []


class LocationTable:
    """`BlobLocations` in the tables ``owner`` and ``place``, shared by all receivers of the database."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def owner(self) -> str:
        """The name of the store."""
        with self._pool.one() as connection:
            found = connection.execute("SELECT id FROM owner").fetchone()
        return "" if found is None else str(found[0])

    def all(self) -> list[str]:
        """All URLs; new blobs go to the last."""
        with self._pool.one() as connection:
            return [row[0] for row in connection.execute("SELECT url FROM place ORDER BY number")]

    def add(self, url: str) -> None:
        """Add a URL as the last one; if it is known, move it to the end."""
        if self.all()[-1:] == [url]:
            return
        with self._pool.one("BEGIN; LOCK TABLE place IN EXCLUSIVE MODE") as connection:
            connection.execute("DELETE FROM place WHERE url = %s", (url,))
            connection.execute("INSERT INTO place(url) VALUES (%s)", (url,))
            connection.execute("COMMIT")


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
        """Exclusive: wait until no commit is passing, then let none pass."""
        with self._pool.one("BEGIN; " + lock("pg_advisory_xact_lock", Key.BLOBS)) as connection:
            yield
            connection.execute("COMMIT")
