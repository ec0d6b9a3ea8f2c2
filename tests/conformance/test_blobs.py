"""Every place for large bodies does the same: a folder, a table, an object store, several at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3
from conformance.engines import Postgres
from support.servers.object_server import ObjectServer

from playhead_checkpoint import BlobFolder
from playhead_core.errors import CorruptTape, StoreError, StoreUnavailable
from playhead_receiver.storage.content.blobs import Blobs, BlobStores, LocationFile
from playhead_receiver.storage.content.object_store import BlobObjects
from playhead_receiver.storage.postgres.address import parse_address, prepare_schema
from playhead_receiver.storage.postgres.blobs import BlobTable
from playhead_receiver.storage.postgres.reader import Pool

KINDS = ["folder", "table", "objects", "shelves"]


@pytest.fixture(params=KINDS)
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Blobs]:
    name = os.urandom(8).hex()
    if request.param == "folder":
        yield BlobFolder(tmp_path / "blobs")
    elif request.param == "table":
        request.getfixturevalue("server")
        place = parse_address(Postgres.url(tmp_path))
        prepare_schema(place)
        pool = Pool(place)
        yield BlobTable(pool)
        pool.close()
    elif request.param == "objects":
        yield BlobObjects(request.getfixturevalue("bucket").url(name))
    else:
        (tmp_path / "data").mkdir()
        shelves = BlobStores(BlobFolder(tmp_path / "data" / "blobs"), LocationFile(tmp_path / "data"))
        shelves.put(b"from before")
        shelves.use(request.getfixturevalue("bucket").url(name))
        shelves.delete(blake3(b"from before").digest())
        yield shelves


def test_what_is_put_comes_back(blobs: Blobs):
    some = [b"", b"one", os.urandom(2_000_000)]
    digests = [blobs.put(data) for data in some]
    assert digests == [blake3(data).digest() for data in some]
    assert [blobs.get(digest) for digest in digests] == some
    assert [blobs.size_bytes(digest) for digest in digests] == [0, 3, 2_000_000]
    assert list(blobs) == sorted(digests)
    assert blobs.put(b"one") == digests[1]
    assert list(blobs) == sorted(digests)


def test_what_is_not_there_is_said(blobs: Blobs):
    digest = blake3(b"nowhere").digest()
    assert not blobs.has(digest)
    for ask in (blobs.get, blobs.size_bytes):
        with pytest.raises(StoreError, match=digest.hex()[:16]) as caught:
            ask(digest)
        assert not isinstance(caught.value, StoreUnavailable)
    blobs.delete(digest)
    assert list(blobs) == []


def test_what_is_deleted_is_gone(blobs: Blobs):
    kept, gone = blobs.put(b"kept"), blobs.put(b"gone")
    blobs.delete(gone)
    assert not blobs.has(gone)
    assert list(blobs) == [kept]
    assert blobs.get(kept) == b"kept"


def test_an_object_that_somebody_has_changed_is_damaged(bucket: ObjectServer):
    import obstore
    from obstore.store import from_url

    blobs = BlobObjects(bucket.url("damaged"))
    digest = blobs.put(b"what was said")
    store = from_url(bucket.url("damaged"), client_options={"allow_http": True})
    obstore.put(store, f"blobs/{digest.hex()[:2]}/{digest.hex()[2:]}", b"something else")
    with pytest.raises(CorruptTape, match="differs from its digest"):
        blobs.get(digest)


def test_an_object_store_that_is_out_of_order_is_unavailable(bucket: ObjectServer):
    blobs = BlobObjects(bucket.url("broken"))
    digest = blobs.put(b"kept")
    bucket.fail()
    try:
        for ask in (
            lambda: blobs.put(b"another"),
            lambda: blobs.get(digest),
            lambda: blobs.has(digest),
            lambda: blobs.delete(digest),
            lambda: list(blobs),
        ):
            with pytest.raises(StoreUnavailable, match="s3://traces/broken cannot be used"):
                ask()
    finally:
        bucket.fail(False)
    assert list(blobs) == [digest]
