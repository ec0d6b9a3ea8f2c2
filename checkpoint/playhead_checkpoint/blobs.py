"""Blobs in a folder: bytes by their BLAKE3 digest."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from blake3 import blake3

from playhead_core.errors import CorruptTape, StoreError

DIGEST_BYTES = 32


class BlobFolder:
    """Keeps each blob as one file, ``<folder>/ab/cdef…``, named by its digest.

    A blob is written to a temporary file, synced, and renamed: so an existing file is complete, and it
    survives power loss once `put` has returned. Several processes may put the same blob concurrently.
    Files are 0600, folders 0700.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)

    def put(self, data: bytes) -> bytes:
        """Store ``data`` unless it exists; return its digest, 32 bytes."""
        digest = blake3(data).digest()
        path = self._path(digest)
        if path.exists():
            return digest
        fresh = [folder for folder in (self._folder, path.parent) if not folder.exists()]
        for folder in fresh:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = path.parent / f".{secrets.token_hex(8)}.part"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        for folder in (path.parent, *(made.parent for made in fresh)):
            _sync_folder(folder)
        return digest

    def get(self, digest: bytes) -> bytes:
        """Return a verified blob. `StoreError` if it does not exist, `CorruptTape` if it is damaged."""
        try:
            data = self._path(digest).read_bytes()
        except FileNotFoundError:
            raise StoreError(f"blob {digest.hex()[:16]} is not in {self._folder}") from None
        if blake3(data).digest() != digest:
            raise CorruptTape(f"blob {digest.hex()[:16]} in {self._folder} differs from its digest")
        return data

    def has(self, digest: bytes) -> bool:
        """Whether the blob exists."""
        return self._path(digest).exists()

    def delete(self, digest: bytes) -> None:
        """Delete a blob, if it exists."""
        self._path(digest).unlink(missing_ok=True)

    def size_bytes(self, digest: bytes) -> int:
        """Return the size of a blob. `StoreError` if it does not exist."""
        try:
            return self._path(digest).stat().st_size
        except FileNotFoundError:
            raise StoreError(f"blob {digest.hex()[:16]} is not in {self._folder}") from None

    def __iter__(self) -> Iterator[bytes]:
        """Yield the digests of all blobs, ascending."""
        if not self._folder.exists():
            return
        for subfolder in sorted(self._folder.iterdir()):
            for file in sorted(subfolder.iterdir()):
                if not file.name.startswith("."):
                    yield bytes.fromhex(subfolder.name + file.name)

    def _path(self, digest: bytes) -> Path:
        if len(digest) != DIGEST_BYTES:
            raise ValueError(f"a digest has {DIGEST_BYTES} bytes, not {len(digest)}")
        name = digest.hex()
        return self._folder / name[:2] / name[2:]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
