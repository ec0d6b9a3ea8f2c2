"""Listing a folder: ``os.scandir`` and its entries."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any, Final, cast

from playhead_core.errors import PlayheadError
from playhead_instrumentation.libraries.files.covered import covered, last, parts_of, querying, stat_of
from playhead_instrumentation.libraries.files.readers import PLACES
from playhead_instrumentation.libraries.files.recorded import Files
from playhead_instrumentation.patching.attribution import readers
from playhead_instrumentation.patching.attribution.readers import THROUGH

_stat: Final = os.stat

stats: Final = querying("stat", parts_of, stat_of)
"""Answers ``os.stat``."""

# The program's own opener may run below these frames.
PLACES[__file__] = readers.PLACES[__file__] = THROUGH


class Entry:
    """An entry of `os.scandir`. It passes for an `os.DirEntry`, which Python code cannot create."""

    __slots__ = ("_kind", "_name", "inode_number", "name", "path")

    def __init__(self, folder: Any, absolute: str, name: str, kind: int, inode: int) -> None:
        is_bytes = isinstance(folder, bytes)
        self.name: Any = os.fsencode(name) if is_bytes else name
        beneath: str | bytes = b"" if is_bytes else ""
        beneath = beneath if isinstance(folder, int) else folder
        self.path: Any = os.path.join(beneath, self.name)
        self._name = os.path.join(absolute, name)
        self._kind = kind
        self.inode_number = inode

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return os.DirEntry

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle 'posix.DirEntry' object")

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is a folder."""
        return self._is(stat.S_IFDIR, follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is a regular file."""
        return self._is(stat.S_IFREG, follow_symlinks)

    def is_symlink(self) -> bool:
        """Return whether it is a symbolic link."""
        return self._kind == stat.S_IFLNK

    def is_junction(self) -> bool:
        """Always False: this system has no junctions."""
        return False

    def inode(self) -> int:
        """Return the number of its inode."""
        return self.inode_number

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """See `os.stat`."""
        files = last()
        if files is None:
            return _stat(self._name, follow_symlinks=follow_symlinks)
        return stats(files, _stat, self._name, follow_symlinks=follow_symlinks)

    def _is(self, kind: int, follow_symlinks: bool) -> bool:
        if self._kind != stat.S_IFLNK or not follow_symlinks:
            return self._kind == kind
        try:
            return stat.S_IFMT(self.stat().st_mode) == kind
        except FileNotFoundError:
            return False

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


Entry.__name__ = Entry.__qualname__ = os.DirEntry.__name__
Entry.__module__ = os.DirEntry.__module__


class Entries:
    """The iterator of `os.scandir`."""

    def __init__(self, entries: Iterator[Any]) -> None:
        self._entries = entries

    def __iter__(self) -> Entries:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> Entries:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the iteration."""
        self._entries = iter([])


def scanning(files: Files, live: Any, path: Any = None) -> Any:
    """See `os.scandir`."""
    path = "." if path is None else path
    name = covered(files, path)
    if name is None:
        return live(path)

    def real(place: str | None) -> list[list[Any]]:
        with live(
            os.fspath(path) if place is None and not isinstance(path, int) else place or path
        ) as it:
            return [[os.fsdecode(one.name), _kind_of(one), one.inode()] for one in it]

    try:
        found = files.query("scandir", name, real)
    except (OSError, PlayheadError):
        raise
    except Exception:
        live(path)  # start over: the iterator before is used up, and the failure is ours
        raise
    folder = cast("Any", path if isinstance(path, int) else os.fspath(path))
    entries = [Entry(folder, name, one[0], one[1], one[2] if len(one) > 2 else 0) for one in found]
    return Entries(iter(entries))


def _kind_of(entry: Any) -> int:
    if entry.is_symlink():
        return stat.S_IFLNK
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    if entry.is_file(follow_symlinks=False):
        return stat.S_IFREG
    return stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)
