"""Durable files, and a check after each sync that the file system still works.

When an error stops the journal (ext4, ``errors=remount-ro``), a sync that is under way may return
success, although the bytes by which the file had grown are lost. Every change of metadata fails from
then on. So a change of metadata is made after the sync; only if it succeeds, the sync counts.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


class FsyncCheck:
    """Checks each sync of files in a folder with an unnamed file there. For one thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def prepare(self) -> None:
        """Make the file, once; call it before anything is written. OSError if it cannot be made."""
        if self._descriptor is None:
            with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
                confirm(file.fileno())
                self._descriptor = os.dup(file.fileno())

    def confirm(self) -> None:
        """Check that earlier syncs worked. OSError if what was synced may be lost."""
        self.prepare()
        assert self._descriptor is not None
        confirm(self._descriptor)

    def close(self) -> None:
        """Close the file. Idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def confirm(descriptor: int) -> None:
    """OSError if the file system accepts no changes any more. An empty file has one byte afterwards."""
    os.posix_fallocate(descriptor, 0, 1)


def create_database(path: Path) -> None:
    """Create the empty file of a database with mode 0600, if it is missing. OSError.

    An existing file is not opened: closing it would drop the POSIX locks of this process's connections,
    and another program that closes the database would then delete the log under them.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def keep(path: Path, data: bytes) -> None:
    """Write a file atomically and durably, with mode 0600; make its folder if it is missing.

    The previous file stays whole until the new one is on disk. OSError if it cannot be written; the
    draft is removed.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.replace(draft, path)
            sync_folder(path.parent)
            if data:
                confirm(file.fileno())
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that the names of its files are on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
