"""Atomic writing of a file that the user names: the old file stays until the new one is complete."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

PRIVATE = 0o600
SHARED = 0o644


@contextmanager
def written(path: Path, mode: int = PRIVATE) -> Generator[IO[bytes]]:
    """A writable file that replaces ``path``, with that ``mode``, when the block completes.

    A link stays, and its target is replaced. A device or a pipe is written to directly. OSError.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not stat.S_ISREG(place.stat().st_mode):
        with open(place, "wb") as file:
            yield file
        return
    handle, partial = tempfile.mkstemp(dir=place.parent, prefix=place.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(partial, mode)
        os.replace(partial, place)
    except BaseException:
        os.unlink(partial)
        raise
