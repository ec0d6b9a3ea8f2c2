"""Blobs: large bodies by digest, in the store itself and in the object stores that it uses.

The store itself keeps the list of these object stores (`BlobLocations`), so that every process that
opens it finds its blobs.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from playhead_core.errors import StoreError, StoreUnavailable
from playhead_receiver.storage.content.object_store import BlobObjects, object_url
from playhead_receiver.system.durable_files import keep


class Blobs(Protocol):
    """Bytes by their BLAKE3 digest of 32 bytes, each kept once.

    Every method may raise `StoreUnavailable` if the location cannot be reached.
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


FILE = "blobs.json"


class BlobLocations(Protocol):
    """The object stores that a store uses, by URL."""

    def owner(self) -> str:
        """The unique, permanent name of the store. It is written into each of its object stores."""
        ...

    def all(self) -> list[str]:
        """All URLs; new blobs go to the last."""
        ...

    def add(self, url: str) -> None:
        """Add a URL as the last one; if it is known, move it to the end."""
        ...


class _Kept(msgspec.Struct):
    owner: str
    urls: list[str] = []


class LocationFile:
    """`BlobLocations` in a file of the data folder; not in a backup, which has the blobs themselves."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE

    def owner(self) -> str:
        """The name of the store."""
        kept = self._read()
        if kept is None:
            self._write(kept := _Kept(secrets.token_hex(16)))
        return kept.owner

    def all(self) -> list[str]:
        """All URLs; new blobs go to the last."""
        kept = self._read()
        return [] if kept is None else kept.urls

    def add(self, url: str) -> None:
        """Add a URL as the last one; if it is known, move it to the end."""
        known = self.all()
        if known[-1:] != [url]:
            self._write(_Kept(self.owner(), [*(one for one in known if one != url), url]))

    def _read(self) -> _Kept | None:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Kept)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as problem:
            raise StoreUnavailable(f"{self._path} cannot be read", cause=str(problem)) from problem

    def _write(self, kept: _Kept) -> None:
        try:
            keep(self._path, msgspec.json.encode(kept))
        except OSError as problem:
            raise StoreUnavailable(f"{self._path} cannot be written", cause=str(problem)) from problem


class BlobStores:
    """`Blobs` in all locations of a store. New ones go to the last object store, else into the store.

    The list of locations is read again if a blob is in none of the known ones. So locations that other
    processes have added are found.
    """

    def __init__(self, local: Blobs, locations: BlobLocations) -> None:
        self._local = local
        self._locations = locations
        self._objects: dict[str, BlobObjects] = {}
        self._order: list[str] = []
        self._look()

    def use(self, url: str) -> None:
        """Send new blobs to ``url`` from now on.

        `ConfigurationError` if it is not the URL of an object store, or belongs to another store.
        `StoreUnavailable` if it cannot be reached. A location that was in use before is accepted
        nevertheless: batches that need it are then refused, and sent again.
        """
        url = object_url(url)
        try:
            self._at(url).claim(self._locations.owner())
        except StoreUnavailable:
            if url not in self._locations.all():
                raise
        self._locations.add(url)
        self._look()

    def put(self, data: bytes) -> bytes:
        """Keep ``data`` and return its digest. The blob is durable when this returns."""
        return (self._at(self._order[-1]) if self._order else self._local).put(data)

    def get(self, digest: bytes) -> bytes:
        """The verified bytes of a blob.

        `StoreError` if it is in no location, `CorruptTape` if it is damaged, `StoreUnavailable` if a
        location cannot be reached.
        """
        missing: StoreError | None = None
        for blobs in self._where():
            try:
                return blobs.get(digest)
            except StoreUnavailable:
                raise
            except StoreError as problem:
                missing = problem
        raise missing or StoreError(f"blob {digest.hex()[:16]} is in no location")

    def has(self, digest: bytes) -> bool:
        """Whether any location holds the blob."""
        return any(blobs.has(digest) for blobs in self._where())

    def delete(self, digest: bytes) -> None:
        """Delete a blob from all locations."""
        self._look()
        for blobs in self._all():
            blobs.delete(digest)

    def size_bytes(self, digest: bytes) -> int:
        """Length of a blob in bytes. `StoreError` if it is in no location."""
        for blobs in self._where():
            if blobs.has(digest):
                return blobs.size_bytes(digest)
        raise StoreError(f"blob {digest.hex()[:16]} is in no location")

    def __iter__(self) -> Iterator[bytes]:
        """The digests of all blobs, ascending."""
        self._look()
        return iter(sorted({digest for blobs in self._all() for digest in blobs}))

    def settled(self) -> set[bytes]:
        """Digests of blobs to which no commit under way can still add the first reference.

        If nothing refers to such a blob while commits are held up, nothing will. In the store itself
        these are all blobs; in an object store, only those that have been there for a while.
        """
        self._look()
        return set(self._local).union(*(self._at(url).settled() for url in self._order))

    def locations(self) -> list[str]:
        """URLs of the object stores; new blobs go to the last."""
        self._look()
        return list(self._order)

    def elsewhere_bytes(self) -> int:
        """Total bytes of the blobs in object stores."""
        return sum(self._at(url).total_bytes() for url in self._order)

    def _where(self) -> Iterator[Blobs]:
        """Where to look: the store itself, the known object stores, then those that were added since."""
        yield from self._all()
        known = set(self._order)
        self._look()
        yield from (self._at(url) for url in self._order if url not in known)

    def _all(self) -> list[Blobs]:
        return [self._local, *(self._at(url) for url in reversed(self._order))]

    def _look(self) -> None:
        self._order = self._locations.all()

    def _at(self, url: str) -> BlobObjects:
        found = self._objects.get(url)
        if found is None:
            found = self._objects[url] = BlobObjects(url)
        return found
