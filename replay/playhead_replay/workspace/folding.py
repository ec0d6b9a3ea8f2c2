"""Applies recorded file changes to a tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from playhead_checkpoint.workspace.tree import Tree, TreeItem, with_content
from playhead_core.file_names import below
from playhead_core.workspace import FolderEntry
from playhead_replay.workspace.file_changes import HERE, FileChange

UNRECORDED = "the content that was written is not on the tape"
OPEN = "it was open for writing"
REDACTED = "credentials in it were replaced"

MOST_BYTES = 1 << 30
"""Largest size of an extended file."""

_FILE, _FOLDER = 0o644, 0o755


class Folding:
    """The known files of a run, by the names on the tape, also outside of its folder."""

    def __init__(self, tree: Tree) -> None:
        self._items: dict[str, TreeItem] = {HERE + path: item for path, item in tree.items()}
        self._folder_mode = _FOLDER

    def tree(self) -> Tree:
        """Return the files below the folder of the run. Names that lead out of it are ignored."""
        found = {name[len(HERE) :]: item for name, item in self._items.items() if name.startswith(HERE)}
        return {path: item for path, item in sorted(found.items()) if below(path)}

    def copy(self) -> Folding:
        """Return a copy."""
        found = Folding({})
        found._items, found._folder_mode = dict(self._items), self._folder_mode
        return found

    def __len__(self) -> int:
        return len(self._items)

    def apply(self, change: FileChange) -> None:
        """Apply the next change, in order of time."""
        name, item = change.name, self._items.get(change.name)
        if change.what == "seen":
            if item is None or item.content is None:
                self._put(name, change, "")
        elif change.what == "opened":
            self._opened(change, item)
        elif change.what == "written":
            self._put(name, change, UNRECORDED)
        elif change.what == "appended":
            self._appended(change, item)
        elif change.what == "cut":
            self._cut(change, item)
        elif change.what == "removed":
            self._gone(name)
        elif change.what == "folder":
            if item is None:
                mode = change.mode or self._folder_mode
                self._items[name] = TreeItem(FolderEntry(_path(name), "folder", mode))
        elif change.what == "link":
            self._items[name] = TreeItem(FolderEntry(_path(name), "link", target=change.to))
        elif change.what == "mode":
            if item is not None and item.entry.kind != "link":
                self._items[name] = replace(item, entry=_with(item.entry, mode=change.mode))
        else:
            self._moved(change, item)

    def _opened(self, change: FileChange, item: TreeItem | None) -> None:
        if item is None or item.entry.kind != "file":
            entry = FolderEntry(_path(change.name), "file", change.mode or _FILE)
            item = with_content(entry, b"")
            if change.how != "update" and change.mode:  # as the umask of the process lets it be
                self._folder_mode = change.mode | (change.mode & 0o444) >> 2
        if change.how == "write":
            entry = _with(item.entry, mode=change.mode or item.entry.mode)
            self._items[change.name] = replace(with_content(entry, b""), why=OPEN)
        elif change.how == "append":
            self._items[change.name] = replace(item, why=item.why or OPEN)
        else:
            self._items.setdefault(change.name, item)

    def _put(self, name: str, change: FileChange, unknown_why: str) -> None:
        known = self._items.get(name)
        mode = change.mode or (known.entry.mode if known is not None else _FILE)
        entry = FolderEntry(_path(name), "file", mode, mtime_ns=change.mtime_ns)
        data = change.data()
        if data is not None:
            self._items[name] = with_content(entry, data, REDACTED if change.redacted else "")
        elif unknown_why or known is None:
            self._items[name] = TreeItem(entry, None, unknown_why or "its content is not on the tape")

    def _appended(self, change: FileChange, item: TreeItem | None) -> None:
        entry = FolderEntry(_path(change.name), "file", _FILE if item is None else item.entry.mode)
        before = b"" if not change.start else self._content(item)
        tail = change.data()
        if before is None or tail is None or len(before) < change.start:
            self._items[change.name] = TreeItem(entry, None, UNRECORDED)
            return
        was_redacted = item is not None and item.why not in ("", OPEN) and bool(change.start)
        why = REDACTED if change.redacted or was_redacted else ""
        self._items[change.name] = with_content(entry, before[: change.start] + tail, why)

    def _cut(self, change: FileChange, item: TreeItem | None) -> None:
        before = self._content(item)
        if item is None or before is None:
            return
        if change.start > MOST_BYTES:
            self._items[change.name] = TreeItem(item.entry, None, UNRECORDED)
            return
        data = before[: change.start].ljust(change.start, b"\0")
        self._items[change.name] = with_content(_with(item.entry, mtime_ns=0), data, item.why)

    def _content(self, item: TreeItem | None) -> bytes | None:
        if item is None or item.content is None:
            return None
        return item.content()

    def _gone(self, name: str) -> None:
        for one in self._under(name):
            del self._items[one]

    def _moved(self, change: FileChange, item: TreeItem | None) -> None:
        """Rename or copy. If the old name is unknown, the snapshot may already have the new one."""
        if item is None and change.to in self._items:
            return
        moved = {one: self._items[one] for one in self._under(change.name)}
        if change.what == "renamed":
            self._gone(change.to)
            self._gone(change.name)
        for name, one in moved.items():
            new = change.to + name[len(change.name) :]
            self._items[new] = replace(one, entry=_with(one.entry, path=_path(new)))
        if not moved:
            entry = FolderEntry(_path(change.to), "file", _FILE)
            self._items[change.to] = TreeItem(
                entry, None, f"its content is unknown: it was {change.name} before"
            )

    def _under(self, name: str) -> list[str]:
        folder = name + "/"
        return [one for one in self._items if one == name or one.startswith(folder)]


def _path(name: str) -> str:
    return name.removeprefix(HERE)


def _with(entry: FolderEntry, **values: object) -> FolderEntry:
    return msgspec.structs.replace(entry, **values)


def names_changed(changes: Iterable[FileChange]) -> Mapping[str, int]:
    """Return the written names, each with the time of its first change in nanoseconds."""
    found: dict[str, int] = {}
    for change in changes:
        if change.what in ("seen",):
            continue
        for name in (change.name, change.to if change.what in ("renamed", "copied") else ""):
            if name:
                found.setdefault(name, change.time_ns)
    return found
