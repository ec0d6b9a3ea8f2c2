"""Takes snapshots of a folder: a scan of all entries, and the content of changed files."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from playhead_checkpoint.workspace.ignoring import RULES, TOOL_FOLDERS, Ignoring, rules_in
from playhead_checkpoint.workspace.reading import Changing, FileReader, Signature, signature_of
from playhead_core.workspace import FolderEntry, Keep, Snapshot, SnapshotChanges, Unkept

MOST_ENTRIES: Final = 20_000
MOST_BYTES: Final = 256 << 20
"""Bytes of new content in one snapshot."""
MOST_NAMED: Final = 20
"""Largest number of excluded items that are listed by name."""

SETTLED_NS: Final = 50_000_000
"""A file that changed more recently may change again with the same signature."""

SYSTEM: Final = frozenset(
    "/ /bin /boot /dev /etc /home /lib /opt /proc /root /run /sbin /srv /sys /tmp /usr /var".split()
)
"""System folders. They are never a workspace, and neither is the home of the user."""


@dataclass(slots=True)
class _Scan:
    """The result of one scan."""

    entries: dict[str, FolderEntry] = field(default_factory=dict[str, FolderEntry])
    signatures: dict[str, Signature] = field(default_factory=dict[str, Signature])
    left_out: list[str] = field(default_factory=list[str])
    bytes_left: int = field(default_factory=lambda: MOST_BYTES)
    is_cut: bool = False

    def leave_out(self, what: str) -> None:
        if len(self.left_out) < MOST_NAMED:
            self.left_out.append(what)
        elif len(self.left_out) == MOST_NAMED:
            self.left_out.append("more")


class WorkingFolder:
    """`playhead_core.workspace.SnapshotTaker` of a folder. Links are never followed."""

    def __init__(self, folder: str, hidden: Sequence[str], limit_bytes: int) -> None:
        self._folder = os.path.realpath(folder)
        self._hidden = frozenset(map(os.path.realpath, hidden))
        self._limit_bytes = limit_bytes
        self._reader = FileReader()
        self._last = _Scan()

    def take(self, keep: Keep, is_over: Callable[[], bool]) -> Snapshot:
        """See `SnapshotTaker.take`."""
        look = _Scan()
        if self._folder in SYSTEM | {os.path.realpath(os.path.expanduser("~"))}:
            look.leave_out(f"{self._folder} is a folder of the system or the home of the user")
        else:
            try:
                self._scan_folders(look, keep, is_over)
            except OSError as problem:
                look.leave_out(f"{self._folder}: {problem.strerror or problem}")
                look.is_cut = True
        last, self._last = self._last, look
        if look.is_cut:  # entries that it did not reach count as unchanged
            for path, entry in last.entries.items():
                if path not in look.entries:
                    look.entries[path] = entry
                    if path in last.signatures:
                        look.signatures[path] = last.signatures[path]
        changed = [one for path, one in look.entries.items() if last.entries.get(path) != one]
        gone = [path for path in last.entries if path not in look.entries]
        size = sum(one.size for one in look.entries.values())
        return Snapshot(SnapshotChanges(changed, gone), len(look.entries), size, look.left_out)

    def _scan_folders(self, look: _Scan, keep: Keep, is_over: Callable[[], bool]) -> None:
        rules = Ignoring.at(self._folder)
        waiting: list[tuple[str, Ignoring | None]] = [(self._folder, rules)]
        for folder, above in waiting:  # grows during the loop
            own = Ignoring(folder, rules_in(os.path.join(folder, RULES)), above)
            for found in _inside(folder, look):
                if found.name in TOOL_FOLDERS or found.path in self._hidden:
                    continue
                is_folder = found.is_dir(follow_symlinks=False)
                if own.ignores(found.path, is_folder):
                    continue
                if len(look.entries) >= MOST_ENTRIES:
                    look.leave_out(f"it has more than {MOST_ENTRIES} files")
                    look.is_cut = True
                    return
                if is_over():
                    look.leave_out("the process ended")
                    look.is_cut = True
                    return
                self._add(look, found, keep)
                if is_folder:
                    waiting.append((found.path, own))

    def _add(self, look: _Scan, found: os.DirEntry[str], keep: Keep) -> None:
        """Add a file, link or folder to the scan; other kinds are excluded."""
        path = os.path.relpath(found.path, self._folder)
        try:
            path.encode()
            seen = found.stat(follow_symlinks=False)
            kind = stat.S_IFMT(seen.st_mode)
            mode = stat.S_IMODE(seen.st_mode)
            if kind == stat.S_IFDIR:
                look.entries[path] = FolderEntry(path, "folder", mode)
            elif kind == stat.S_IFLNK:
                look.entries[path] = FolderEntry(path, "link", target=os.readlink(found.path))
            elif kind == stat.S_IFREG:
                self._file(look, path, seen, keep)
        except UnicodeError:
            look.leave_out(f"{path!r}: its name is no text")
        except OSError:
            return  # deleted meanwhile

    def _file(self, look: _Scan, path: str, seen: os.stat_result, keep: Keep) -> None:
        known = self._last.entries.get(path)
        if known is not None and self._last.signatures.get(path) == signature_of(seen):
            look.entries[path], look.signatures[path] = known, signature_of(seen)
            return
        mode = stat.S_IMODE(seen.st_mode)
        entry = FolderEntry(path, "file", mode, seen.st_size, seen.st_mtime_ns)
        why: Unkept = ""
        if seen.st_size > self._limit_bytes:
            why = "large"
        elif seen.st_size > look.bytes_left:
            why = "bytes"
        else:
            try:
                data, seen = self._reader.read(os.path.join(self._folder, path))
            except Changing:
                why = "changed"
            except PermissionError:
                why = "unreadable"
            else:
                look.bytes_left -= len(data)
                kept = keep(data)
                mode = stat.S_IMODE(seen.st_mode)
                entry = FolderEntry(path, "file", mode, len(data), seen.st_mtime_ns)
                if kept is None:
                    why = "content"
                else:
                    digest, size, redacted = kept
                    entry = FolderEntry(
                        path,
                        "file",
                        mode,
                        len(data),
                        seen.st_mtime_ns,
                        digest,
                        kept_bytes=size,
                        redacted=redacted,
                    )
        if why:
            entry = FolderEntry(path, "file", mode, entry.size, entry.mtime_ns, unkept=why)
        elif time.time_ns() - max(seen.st_mtime_ns, seen.st_ctime_ns) > SETTLED_NS:
            look.signatures[path] = signature_of(seen)
        look.entries[path] = entry


def _inside(folder: str, look: _Scan) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder, by name. A link that has just replaced it is not followed."""
    try:
        if os.path.realpath(folder) != folder:
            return
        with os.scandir(folder) as found:
            yield from sorted(found, key=lambda one: one.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as problem:
        look.leave_out(f"{folder}: {problem.strerror or problem}")
