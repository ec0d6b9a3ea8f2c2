"""What is on disk when it is said to be: files, and a word from the file system after a sync.

A journal that is stopped by an error (ext4, ``errors=remount-ro``) can let a sync that is under way
return as if all were well, and what the file had grown by is gone. Every change of metadata fails from
that moment on. So one is made after the sync, and what was synced counts when that has worked.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


class Witness:
    """A file without a name in a folder, asked after each sync of others there. For one thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def prepare(self) -> None:
        """Make the file, once. OSError if it cannot be; before anything is written, then."""
        if self._descriptor is None:
            with tempfile.TemporaryFile(dir=self._folder, buffering=0) as file:
                confirm(file.fileno())
                self._descriptor = os.dup(file.fileno())

    def confirm(self) -> None:
        """OSError if what was synced before may be lost."""
        self.prepare()
        assert self._descriptor is not None
        confirm(self._descriptor)

    def close(self) -> None:
        """Let go of the file. Idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def confirm(descriptor: int) -> None:
    """OSError if the file system takes no changes any more. A file without a byte has one afterwards."""
    os.posix_fallocate(descriptor, 0, 1)


def keep(path: Path, data: bytes) -> None:
    """Write a file, mode 0600, making its folder; the one before stays whole until this one is on disk.

    OSError if it cannot be; what was begun is removed.
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
    """Have the names in a folder on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
