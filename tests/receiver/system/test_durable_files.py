"""What is said to be on disk is."""

import errno
import os
from contextlib import closing
from pathlib import Path

import pytest
from support.tapes.batches import span_of

from playhead_core.errors import StoreUnavailable
from playhead_receiver.storage import Batch, open_store
from playhead_receiver.system import durable_files


def refuse(*_: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_a_commit_that_may_be_lost_is_refused_and_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    trace = b"t" * 16
    first, second = (Batch(spans=[span_of(trace, number)]) for number in (1, 2))
    with closing(open_store(tmp_path)) as store:
        store.commit(first)
        with monkeypatch.context() as patch:
            patch.setattr(durable_files.os, "posix_fallocate", refuse)
            with pytest.raises(StoreUnavailable) as refused:
                store.commit(second)
            assert refused.value.cause == "[Errno 30] Read-only file system"
        store.commit(second)
        assert len(list(store.spans(trace))) == 2
        assert list(store.verify()) == []


def test_a_file_is_there_as_it_was_or_as_it_shall_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "folder" / "file"
    durable_files.keep(path, b"as it was")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="Read-only"):
        patch.setattr(durable_files.os, "fsync", refuse)
        durable_files.keep(path, b"never")
    assert path.read_bytes() == b"as it was"
    durable_files.keep(path, b"")
    assert [found.name for found in path.parent.iterdir()] == ["file"]
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"", 0o600)
