"""Where large bodies lie, beside what refers to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Blobs(Protocol):
    """Bytes by their BLAKE3 digest of 32 bytes, each kept once.

    Every method may raise `StoreUnavailable` where the place cannot be reached just now.
    """

    def put(self, data: bytes) -> bytes:
        """Keep ``data``; its digest. It is durable when this returns."""
        ...

    def get(self, digest: bytes) -> bytes:
        """The bytes of a blob, verified. `StoreError`: it is not here; `CorruptTape`: it is damaged."""
        ...

    def has(self, digest: bytes) -> bool:
        """Whether the blob is here."""
        ...

    def delete(self, digest: bytes) -> None:
        """Forget a blob. Nothing happens when it is not here."""
        ...

    def size_bytes(self, digest: bytes) -> int:
        """Length of a blob. `StoreError` if it is not here."""
        ...

    def __iter__(self) -> Iterator[bytes]:
        """The digests of all blobs, ascending."""
        ...
