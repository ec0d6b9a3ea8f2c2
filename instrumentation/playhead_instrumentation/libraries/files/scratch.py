"""The scratch folder of a replay: what the program writes, instead of on its real files."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import stat
import tempfile
from typing import Final

from playhead_core.facts import digest_of

OWN_MODE: Final = stat.S_IRUSR | stat.S_IWUSR

_made: Final[list[tuple[int, str]]] = []
"""Folders made here, each with the process that made it."""


@functools.cache
def delete_at_exit() -> None:
    """Delete the folders when the process ends, after whatever is registered with `atexit` later.

    What ends a recording has to be: it takes databases from there that the program left open.
    """
    atexit.register(_remove)


def _remove() -> None:
    """Delete the folders, outside the program's view."""
    for process, folder in _made:
        if process == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)


class Scratch:
    """One scratch folder: a tree of written files, and a store of recorded contents."""

    def __init__(self, folder: str) -> None:
        """``folder``: empty; by default a new one, which is deleted with the process."""
        if not folder:
            delete_at_exit()
            # A forked child uses a folder inside its parent's, because a signal may end the child.
            inherited = next((there for _, there in _made if os.path.isdir(there)), None)
            folder = tempfile.mkdtemp(prefix="playhead-scratch-", dir=inherited)
            _made.append((os.getpid(), folder))
        self.folder: Final = folder
        self._tree: Final = os.path.join(folder, "tree")
        self.store: Final = os.path.join(folder, "contents")
        """The folder for files with recorded contents."""
        for below in (self._tree, self.store):
            os.makedirs(below, exist_ok=True)

    def place(self, path: str) -> str:
        """Return the place of an absolute path in the tree."""
        return f"{self._tree}{path}"

    def make_parent(self, path: str) -> None:
        """Make the folder in which a file at this path would lie. Never raises `OSError`."""
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(self.place(path)), exist_ok=True)

    def lay(self, source: str, place: str) -> None:
        """Give a file in the tree the content of ``source``: in place, as it may be open elsewhere."""
        if os.path.exists(place):
            with open(source, "rb") as file, open(place, "rb") as there:
                if digest_of(file.read()) == digest_of(there.read()):
                    return
        shutil.copyfile(source, place)
        os.chmod(place, OWN_MODE)
