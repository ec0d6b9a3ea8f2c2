import os
import stat
import threading
from pathlib import Path

import pytest
from blake3 import blake3

from playhead_checkpoint import BlobFolder
from playhead_core.errors import CorruptTape, StoreError


def test_what_was_put_comes_back_under_its_digest(tmp_path: Path):
    blobs = BlobFolder(tmp_path / "blobs")
    digest = blobs.put(b"state of the agent")
    assert digest == blake3(b"state of the agent").digest()
    assert blobs.get(digest) == b"state of the agent"
    assert blobs.size_bytes(digest) == 18
    assert blobs.has(digest)


def test_an_empty_blob_is_a_blob(tmp_path: Path):
    blobs = BlobFolder(tmp_path)
    assert blobs.get(blobs.put(b"")) == b""


def test_putting_twice_keeps_one_file(tmp_path: Path):
    blobs = BlobFolder(tmp_path)
    digest = blobs.put(b"same")
    place = tmp_path / digest.hex()[:2] / digest.hex()[2:]
    first = place.stat()
    assert blobs.put(b"same") == digest
    assert place.stat().st_ino == first.st_ino
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [place]


def test_iteration_gives_every_digest_in_order(tmp_path: Path):
    blobs = BlobFolder(tmp_path / "blobs")
    assert list(blobs) == []
    digests = sorted(blobs.put(str(n).encode()) for n in range(40))
    assert list(blobs) == digests


def test_a_missing_blob_is_named(tmp_path: Path):
    blobs = BlobFolder(tmp_path)
    digest = blake3(b"never put").digest()
    assert not blobs.has(digest)
    with pytest.raises(StoreError, match=digest.hex()[:16]):
        blobs.get(digest)
    with pytest.raises(StoreError, match=digest.hex()[:16]):
        blobs.size_bytes(digest)


def test_a_damaged_blob_is_refused(tmp_path: Path):
    blobs = BlobFolder(tmp_path)
    digest = blobs.put(b"whole")
    (tmp_path / digest.hex()[:2] / digest.hex()[2:]).write_bytes(b"whol")
    with pytest.raises(CorruptTape, match=digest.hex()[:16]):
        blobs.get(digest)


def test_what_is_no_digest_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="32 bytes, not 3"):
        BlobFolder(tmp_path).get(b"abc")


def test_only_the_owner_may_read(tmp_path: Path):
    old = os.umask(0)
    try:
        digest = BlobFolder(tmp_path / "blobs").put(b"secret")
    finally:
        os.umask(old)
    shelf = tmp_path / "blobs" / digest.hex()[:2]
    assert stat.S_IMODE((shelf / digest.hex()[2:]).stat().st_mode) == 0o600
    assert stat.S_IMODE(shelf.stat().st_mode) == 0o700
    assert stat.S_IMODE(shelf.parent.stat().st_mode) == 0o700


def test_a_blob_half_written_is_not_seen(tmp_path: Path):
    blobs = BlobFolder(tmp_path)
    digest = blobs.put(b"there")
    (tmp_path / digest.hex()[:2] / ".0011.part").write_bytes(b"th")
    assert list(blobs) == [digest]


def test_many_threads_put_the_same_blobs(tmp_path: Path):
    blobs = BlobFolder(tmp_path)
    expected = sorted(blake3(bytes([n]) * 1000).digest() for n in range(30))
    threads = [
        threading.Thread(target=lambda: [blobs.put(bytes([n]) * 1000) for n in range(30)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(blobs) == expected
    assert all(blobs.get(digest) for digest in expected)
    assert not list(tmp_path.rglob(".*.part"))
