"""The files of a working folder at one time: a value that can be compared, and written to a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from playhead_core.errors import PathOutside, PlayheadError, UsageError
from playhead_core.facts import digest_of
from playhead_core.file_names import below, inside, real_name
from playhead_core.workspace import FolderEntry, SnapshotChanges

Bytes: TypeAlias = Callable[[], bytes]
"""Reads a content. Raises `PlayheadError` if it is missing or damaged."""


@dataclass(frozen=True, slots=True)
class TreeItem:
    """A file, link or folder."""

    entry: FolderEntry
    content: Bytes | None = None
    """Content of a file; None if it is unknown."""
    why: str = ""
    """Why the content is unknown or inexact."""

    @property
    def is_exact(self) -> bool:
        """Whether it can be restored byte for byte."""
        return not self.why


Tree: TypeAlias = Mapping[str, TreeItem]
"""Items by path, relative to the folder, with ``/``, sorted."""

Difference: TypeAlias = Literal["added", "removed", "changed", "mode", "unknown"]


class TreeChange(NamedTuple):
    """How one path differs between two trees."""

    path: str
    what: Difference
    """``mode``: only permissions; ``unknown``: the content is unknown on one side."""
    before: TreeItem | None
    after: TreeItem | None


@dataclass(frozen=True, slots=True)
class Laid:
    """The result of `lay`."""

    files: int = 0
    size_bytes: int = 0
    missing: tuple[tuple[str, str], ...] = ()
    """Missing or inexact files, each with the reason."""


WHY: Final[Mapping[str, str]] = {
    "large": "it is larger than file-limit-bytes",
    "bytes": "the snapshot had reached its limit",
    "changed": "it changed while it was read",
    "unreadable": "it could not be read",
    "content": "no content was recorded",
}


def changed(
    tree: Tree, changes: SnapshotChanges, read: Callable[[FolderEntry], bytes]
) -> dict[str, TreeItem]:
    """Return the tree after a snapshot. ``read``: reads the content of an entry.

    Names that lead out of the folder are ignored: data from a tape is not trusted.
    """
    after = {path: item for path, item in tree.items() if path not in set(changes.gone)}
    for entry in changes.entries:
        if below(entry.path):
            after[entry.path] = item_of(entry, read)
    return dict(sorted(after.items()))


def item_of(entry: FolderEntry, read: Callable[[FolderEntry], bytes]) -> TreeItem:
    """Return an entry of a snapshot as an item; ``read`` reads its content."""
    if entry.kind != "file":
        return TreeItem(entry)
    if entry.unkept or not entry.digest:
        return TreeItem(entry, None, WHY.get(entry.unkept, "its content was not kept"))
    why = f"{entry.redacted} credentials in it were replaced" if entry.redacted else ""
    return TreeItem(entry, lambda: read(entry), why)


def with_content(entry: FolderEntry, data: bytes, why: str = "") -> TreeItem:
    """Return a file with this content."""
    size = len(data)
    made = FolderEntry(
        entry.path, "file", entry.mode, size, entry.mtime_ns, digest_of(data), kept_bytes=size
    )
    return TreeItem(made, lambda: data, why)


def tree_difference(before: Tree, after: Tree) -> list[TreeChange]:
    """Return the paths that differ, sorted. No content is read."""
    found: list[TreeChange] = []
    for path in sorted(before.keys() | after.keys()):
        one, other = before.get(path), after.get(path)
        what = _differs(one, other)
        if what is not None:
            found.append(TreeChange(path, what, one, other))
    return found


def _differs(one: TreeItem | None, other: TreeItem | None) -> Difference | None:
    if one is None:
        return "added"
    if other is None:
        return "removed"
    before, after = one.entry, other.entry
    if (before.kind, before.target) != (after.kind, after.target):
        return "changed"
    if before.digest != after.digest or before.size != after.size:
        known = one.content is not None and other.content is not None
        return "changed" if known or before.size != after.size else "unknown"
    if before.kind == "file" and one.content is None and before.mtime_ns != after.mtime_ns:
        return "unknown"
    return "mode" if before.mode != after.mode and before.kind != "link" else None


def lay(tree: Tree, folder: Path) -> Laid:
    """Write a tree to ``folder``, which is empty or created: contents, links, permissions, times.

    Special mode bits such as set-user-id are not restored. `UsageError` if the folder is not empty.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if next(folder.iterdir(), None) is not None:
        raise UsageError(f"{folder} is not empty", hint="name a folder that is not there yet")
    laid, missing = Laid(), list[tuple[str, str]]()
    items = [item for _, item in sorted(tree.items())]
    for item in _of("folder", items):
        try:
            inside(folder, real_name(item.entry.path)).mkdir(mode=0o700, parents=True, exist_ok=True)
        except (OSError, PathOutside) as problem:
            missing.append((item.entry.path, str(problem)))
    for item in _of("file", items):
        try:
            size = _write(item, inside(folder, real_name(item.entry.path)))
        except (OSError, PlayheadError) as problem:
            missing.append(
                (item.entry.path, problem.what if isinstance(problem, PlayheadError) else str(problem))
            )
            continue
        laid = replace(laid, files=laid.files + 1, size_bytes=laid.size_bytes + size)
        if item.why:
            missing.append((item.entry.path, item.why))
    # Links come last, so that nothing is written through one.
    for item in _of("link", items):
        try:
            path = inside(folder, real_name(item.entry.path))
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.symlink_to(real_name(item.entry.target))
            laid = replace(laid, files=laid.files + 1)
        except (OSError, ValueError, PathOutside) as problem:
            missing.append((item.entry.path, str(problem)))
    for item in reversed(list(_of("folder", items))):
        try:
            path = inside(folder, real_name(item.entry.path))
            if path.is_dir() and not path.is_symlink() and item.entry.mode:
                path.chmod(item.entry.mode & 0o777)
        except (OSError, PathOutside):
            continue  # reported above as missing
    return replace(laid, missing=tuple(missing))


def _of(kind: str, items: Iterable[TreeItem]) -> Iterable[TreeItem]:
    return (item for item in items if item.entry.kind == kind)


def _write(item: TreeItem, path: Path) -> int:
    entry = item.entry
    if item.content is None:
        raise UsageError(item.why or "its content is not known")
    data = item.content()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), (entry.mode or 0o600) & 0o777)
    if entry.mtime_ns:
        os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns))
    return len(data)
