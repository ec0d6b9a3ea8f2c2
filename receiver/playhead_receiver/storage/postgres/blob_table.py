"""Large bodies in a table, which all receivers share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blake3 import blake3

from playhead_core.errors import CorruptTape, StoreError
from playhead_receiver.storage.postgres.connections.reader import Pool


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
