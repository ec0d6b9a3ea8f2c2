"""Copies a store while it is written to, and restores one from a copy."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import apsw

from playhead_checkpoint import BlobFolder
from playhead_core.errors import CorruptTape, StoreError, StoreUnavailable
from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.sqlite.checkpoint_file import CHECKPOINTS, CheckpointFile
from playhead_receiver.storage.sqlite.schema import FILE, open_writer, store_errors
from playhead_receiver.storage.writing.prepare import blob_digests
from playhead_receiver.system.writer_lock import WriterLock

BLOBS = "blobs"
DRAFT = ".draft"


def copy_store(source: apsw.Connection, blobs: Blobs, folder: Path, checkpoints: CheckpointFile) -> int:
    """Copy the snapshot that ``source`` sees. The database file comes last: with it, a copy is complete.

    The checkpoints are copied as they are after the snapshot was taken, so that none of a run in it is
    missing. Returns how many blobs could not be copied because they are damaged or missing.
    `StoreUnavailable`, `StoreError`.
    """
    make_empty(folder)
    kept, missing = BlobFolder(folder / BLOBS), 0
    rows = source.execute("SELECT blobs FROM fact_run WHERE blobs IS NOT NULL")
    for digest in {digest for (found,) in rows for digest in blob_digests(found)}:  # type: ignore[arg-type]
        try:
            kept.put(blobs.get(digest))
        except StoreUnavailable:
            raise
        except (StoreError, CorruptTape):
            missing += 1
    checkpoints.copy_to(folder)
    draft = folder / (FILE + DRAFT)
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with store_errors(draft):
        copy = apsw.Connection(str(draft))
        with copy.backup("main", source, "main") as going:
            while not going.done:
                going.step(1000)
        copy.pragma("journal_mode", "delete")
        copy.close()
    with open(draft, "rb") as file:
        os.fsync(file.fileno())
    os.rename(draft, folder / FILE)
    return missing


def make_empty(folder: Path) -> None:
    """Make a folder. `StoreError` if it exists and is not empty."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        something = next(folder.iterdir(), None)
    except OSError as problem:
        raise StoreError(f"{folder} cannot be used", cause=str(problem)) from problem
    if something is not None:
        raise StoreError(f"{folder} is not empty", hint="name a folder that does not exist yet")


def restore(backup: Path, data_dir: Path) -> None:
    """Restore a store from a backup, which is not changed.

    `StoreError` if ``backup`` is not a backup, or if ``data_dir`` has a store already; `StoreBusy`.
    """
    if not (backup / FILE).is_file():
        raise StoreError(f"{backup} holds no backup", hint="playhead backup DIR makes one")
    lock = WriterLock.take(data_dir)
    try:
        if any((data_dir / name).exists() for name in (FILE, CHECKPOINTS)):
            raise StoreError(f"{data_dir} already holds a store", hint="choose another: --data-dir DIR")
        kept, blobs = BlobFolder(backup / BLOBS), BlobFolder(data_dir / BLOBS)
        for digest in kept:
            blobs.put(kept.get(digest))
        if (backup / CHECKPOINTS).exists():
            _copy(backup / CHECKPOINTS, data_dir / CHECKPOINTS)
        _copy(backup / FILE, data_dir / FILE)
        with store_errors(data_dir / FILE):
            open_writer(data_dir / FILE).close()
    finally:
        lock.release()


def _copy(source: Path, target: Path) -> None:
    """Copy a file; it is there when all of it is on disk."""
    draft = target.with_name(target.name + DRAFT)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file, open(source, "rb") as found:
        shutil.copyfileobj(found, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(draft, target)
