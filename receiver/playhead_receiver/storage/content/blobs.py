"""The protocol of places that hold large bodies apart from the facts that refer to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Blobs(Protocol):
    """Bytes by their BLAKE3 digest of 32 bytes, each kept once.

    Every method may raise `StoreUnavailable` if the place cannot be reached.
    """

    def put(self, data: bytes) -> bytes:
        """Keep ``data`` and return its digest. The blob is durable when this returns."""
        ...

    def get(self, digest: bytes) -> bytes:
        """The verified bytes of a blob. `StoreError` if it is missing, `CorruptTape` if damaged."""
        ...

    def has(self, digest: bytes) -> bool:
        """Whether the blob exists."""
        ...

    def delete(self, digest: bytes) -> None:
        """Delete a blob. No-op if it does not exist."""
        ...

    def size_bytes(self, digest: bytes) -> int:
        """Length of a blob in bytes. `StoreError` if it does not exist."""
        ...

    def __iter__(self) -> Iterator[bytes]:
        """The digests of all blobs, ascending."""
        ...
