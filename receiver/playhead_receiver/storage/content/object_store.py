"""Large bodies in an object store: S3 and compatible services. The library for it is an extra."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from blake3 import blake3

from playhead_core.errors import ConfigurationError, CorruptTape, StoreError, StoreUnavailable

SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss")
GRACE_S = 3600.0
"""Age in seconds after which no reference to an object can still be on its way."""
CONNECT_S = 5
REQUEST_S = 30
RETRIES = 2
RETRY_S = 20
"""Total seconds for the retries of a request. It is short: the sender of the batch sends it again."""

_BLOB = re.compile(r"blobs/([0-9a-f]{2})/([0-9a-f]{62})")
_OWNER = "owner"


class BlobObjects:
    """Each blob is an object ``<url>/blobs/ab/cdef…``; ``<url>/owner`` names the store that owns them.

    ``url``: ``s3://BUCKET/PREFIX``. Credentials, region and endpoint come from where the provider's SDKs
    look for them: ``AWS_ACCESS_KEY_ID``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``, the machine's role.
    `ConfigurationError` for any other ``url``, `StoreUnavailable` if the library is not installed.
    """

    def __init__(self, url: str) -> None:
        self.name = object_url(url)
        self._obstore, self._store = _opened(self.name)

    def claim(self, owner: str) -> None:
        """Write ``owner`` into the place. `ConfigurationError` if it belongs to another owner."""
        with self._speaking():
            try:
                self._obstore.put(self._store, _OWNER, owner.encode(), mode="create")
                return
            except self._obstore.exceptions.AlreadyExistsError:
                found = bytes(self._obstore.get(self._store, _OWNER).bytes()).decode(errors="replace")
        if found != owner:
            raise ConfigurationError(
                f"{self.name} holds the large bodies of another store",
                hint="give each store a prefix of its own",
            )

    def put(self, data: bytes) -> bytes:
        """Keep ``data`` and return its digest. The blob is durable when this returns."""
        digest = blake3(data).digest()
        with self._speaking():
            if not self._there(digest):
                self._obstore.put(self._store, _path(digest), data)
        return digest

    def get(self, digest: bytes) -> bytes:
        """The verified bytes of a blob. `StoreError` if it is missing, `CorruptTape` if damaged."""
        with self._speaking():
            try:
                data = bytes(self._obstore.get(self._store, _path(digest)).bytes())
            except FileNotFoundError:
                raise self._missing(digest) from None
        if blake3(data).digest() != digest:
            raise CorruptTape(f"blob {digest.hex()[:16]} in {self.name} differs from its digest")
        return data

    def has(self, digest: bytes) -> bool:
        """Whether the blob exists."""
        with self._speaking():
            return self._there(digest)

    def delete(self, digest: bytes) -> None:
        """Delete a blob. No-op if it does not exist."""
        with self._speaking():
            try:
                self._obstore.delete(self._store, _path(digest))
            except FileNotFoundError:
                pass

    def size_bytes(self, digest: bytes) -> int:
        """Length of a blob in bytes. `StoreError` if it does not exist."""
        with self._speaking():
            try:
                return int(self._obstore.head(self._store, _path(digest))["size"])
            except FileNotFoundError:
                raise self._missing(digest) from None

    def __iter__(self) -> Iterator[bytes]:
        """The digests of all blobs, ascending."""
        return iter(sorted(digest for digest, _, _ in self._all()))

    def settled(self) -> set[bytes]:
        """Digests of the blobs that were put at least `GRACE_S` ago."""
        latest = time.time() - GRACE_S
        return {digest for digest, _, put_s in self._all() if put_s <= latest}

    def total_bytes(self) -> int:
        """Total bytes of all blobs."""
        return sum(size for _, size, _ in self._all())

    def _all(self) -> Generator[tuple[bytes, int, float]]:
        """Digest, size in bytes, and time of the put in Unix seconds, of each blob."""
        with self._speaking():
            for page in self._obstore.list(self._store, prefix="blobs"):
                for object in page:
                    found = _BLOB.fullmatch(object["path"])
                    if found:
                        digest = bytes.fromhex(found[1] + found[2])
                        yield digest, int(object["size"]), object["last_modified"].timestamp()

    def _there(self, digest: bytes) -> bool:
        try:
            self._obstore.head(self._store, _path(digest))
        except FileNotFoundError:
            return False
        return True

    def _missing(self, digest: bytes) -> StoreError:
        return StoreError(f"blob {digest.hex()[:16]} is not in {self.name}")

    @contextmanager
    def _speaking(self) -> Generator[None]:
        try:
            yield
        except (self._obstore.exceptions.BaseError, OSError) as problem:
            raise StoreUnavailable(
                f"{self.name} cannot be used",
                cause=_line(problem),
                hint="check bucket, credentials and network",
            ) from problem


class Bucket:
    """Foreign objects below ``url``, read only. Errors as those of `BlobObjects`."""

    def __init__(self, url: str) -> None:
        self.name = object_url(url)
        self._obstore, self._store = _opened(self.name)

    def holds(self, url: str) -> bool:
        """Whether ``url`` is below this bucket's URL."""
        steps = url[len(self.name) + 1 :].split("/")
        return url.startswith(f"{self.name}/") and not {"", ".", ".."}.intersection(steps)

    def read(self, url: str, most_bytes: int) -> bytes | None:
        """The object at ``url``, which must satisfy `holds`; None if it is missing or larger.

        `StoreUnavailable` if the object store cannot be used.
        """
        try:
            found = self._obstore.get(self._store, url[len(self.name) + 1 :])
            return bytes(found.bytes()) if found.meta["size"] <= most_bytes else None
        except FileNotFoundError:
            return None
        except (self._obstore.exceptions.BaseError, OSError) as problem:
            raise StoreUnavailable(f"{self.name} cannot be used", cause=_line(problem)) from None


def _opened(url: str) -> tuple[Any, Any]:
    """The library, and the object store at ``url``. Errors as those of `BlobObjects`."""
    try:
        import obstore
        from obstore.store import from_url
    except ImportError as problem:
        raise StoreUnavailable(
            f"the library for {url} is not installed",
            cause=str(problem),
            hint="pip install 'playhead[s3]'",
        ) from None
    try:
        store = from_url(
            url,
            client_options={
                "allow_http": True,  # for endpoints that are configured with http://
                "connect_timeout": timedelta(seconds=CONNECT_S),
                "timeout": timedelta(seconds=REQUEST_S),
            },
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_S)},
        )
    except (obstore.exceptions.BaseError, ValueError) as problem:
        raise ConfigurationError(f"{url} cannot be used", cause=_line(problem)) from None
    return obstore, store


def object_url(url: str) -> str:
    """``url`` without a trailing slash, as it is stored. `ConfigurationError` if it is not supported."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.netloc or parts.query or "@" in parts.netloc:
        raise ConfigurationError(
            "the URL for large bodies may only name a bucket and a prefix in it",
            hint="s3://BUCKET/PREFIX; the rest in AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_REGION, …",
        )
    return url.rstrip("/")


def _path(digest: bytes) -> str:
    name = digest.hex()
    return f"blobs/{name[:2]}/{name[2:]}"


def _line(problem: Exception) -> str:
    return str(problem).split("\n", 1)[0]
