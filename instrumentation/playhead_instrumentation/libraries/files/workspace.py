"""The files that a run works on: their state, their changes, and applying these changes again.

A child process changes files without our seeing it, so a look is taken before it starts and after it
ends. A replay, which starts no child, applies the difference to its scratch folder. The program waits
for these looks, so they are bounded in entries, in bytes and in time. Files that were not looked at
count as unchanged.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Literal, TypeAlias

import blake3
import msgspec

from playhead_core.errors import PathOutside
from playhead_core.facts import digest_of
from playhead_core.file_names import inside, real_name, tape_name
from playhead_instrumentation.libraries import sqlite_files
from playhead_instrumentation.libraries.files.changes import Change, make

IGNORED: Final = frozenset((".venv", "__pycache__", "node_modules"))
"""Folders that are not looked into."""

MOST: Final = 50_000
"""Files and folders in one look, those near the roots first."""

LOOK_S: Final = 0.1
"""Longest duration of one look, in seconds; enough for some 20,000 files and folders."""

CHANGED_BYTES: Final = 64 << 20
CHANGED_S: Final = 0.25
"""Limits for reading what a child has written: bytes, and seconds."""

SYSTEM: Final = frozenset(
    (
        "/ /bin /boot /dev /etc /home /lib /lib64 /media /mnt /opt /private /proc /root /run /sbin /srv "
        "/sys /tmp /usr /usr/bin /usr/lib /usr/lib64 /usr/local /usr/sbin /usr/share /usr/src /var "
        "/var/lib /var/log /var/tmp /Applications /Library /System /Users /Volumes"
    ).split()
)
"""Folders that are not a workspace. Nor is the home of the user. Folders in them may be one."""

Unlooked: TypeAlias = Literal["", "folder", "entries", "time", "bytes"]
"""Why a look is incomplete: the run works in a folder of the system, or there was too much."""

LIMIT_BYTES: Final = 16 << 20
"""Largest file whose content is kept, in bytes; of a larger one only the digest is."""

State: TypeAlias = tuple[int, int, int, int]
"""Mode, size in bytes, modification time in nanoseconds, inode."""

_now_s: Final = time.monotonic

_FOLDER: Final = stat.S_IFDIR


class Names:
    """Paths in the form of the tape: ``./…`` below the folder of the run, ``~/…`` below the home."""

    def __init__(self, cwd: str, home: str, *, recorded_cwd: str = "") -> None:
        """``recorded_cwd``: at replay, the recorded folder of the run, which the program may use too."""
        places = (cwd, "."), (recorded_cwd, "."), (home, "~")
        self._places = [(tape_name(here), sign) for here, sign in places if len(here) > 1]

    def short(self, path: str) -> str:
        """Return the name of an absolute path."""
        path = tape_name(path)
        for here, sign in self._places:
            if path.startswith(here) and path[len(here) :][:1] in ("", "/"):
                return sign + path[len(here) :]
        return path

    def long(self, name: str) -> str:
        """Return the absolute path of a name."""
        for here, sign in self._places:
            if name[:1] == sign and name[1:2] in ("", "/"):
                return real_name(here + name[1:])
        return real_name(name)


class Look(msgspec.Struct, frozen=True):
    """The state of the workspace at one moment."""

    folders: dict[str, dict[str, State]]
    """States by absolute path of the folder and name in it; roots by path, in the folder ``""``."""
    unlooked: Unlooked = ""
    """Why the look is incomplete; empty if it is complete. Each folder is complete or missing."""

    def paths(self) -> list[str]:
        """Return the paths of all files and folders."""
        return [os.path.join(folder, name) for folder, inside in self.folders.items() for name in inside]


class Workspace:
    """The folders of a run. Safe from any thread."""

    def __init__(
        self,
        names: Names,
        roots: Iterable[str] = (),
        *,
        place: Callable[[str], str] | None = None,
        changed: Callable[[str], None] | None = None,
        hidden: Collection[str] = (),
        limit_bytes: int = LIMIT_BYTES,
        most: int = MOST,
    ) -> None:
        """``roots``: absolute paths. ``place``: the real place of a path, by default the path itself.

        ``changed``: called with each path that `apply` changes. ``hidden``: folders below the roots that
        are not looked into.
        """
        self.names: Final = names
        self._hidden: Final = frozenset(hidden)
        given = list(roots)
        self._roots: dict[str, None] = dict.fromkeys(root for root in given if is_workspace(root))
        self._unlooked: Unlooked = "folder" if len(self._roots) < len(given) else ""
        self._place = place
        self._changed = changed
        self.limit_bytes: Final = limit_bytes
        """Above it, the content of a file is not kept."""
        self._most = most
        self.is_database: Callable[[str], bool] = lambda path: False
        """Whether this process has a SQLite database open there; we must not open that file then."""
        self._lock = threading.Lock()
        self._last: Look | None = None
        self._touched: dict[str, None] = {}
        """Paths that the program itself has changed since the last look."""

    @classmethod
    def of_process(
        cls, limit_bytes: int = LIMIT_BYTES, *, recorded_cwd: str = "", hidden: Collection[str] = ()
    ) -> Workspace:
        """Return the workspace of this process: its working folder."""
        cwd = os.getcwd()
        names = Names(cwd, os.path.expanduser("~"), recorded_cwd=recorded_cwd)
        return cls(names, [cwd], hidden=hidden, limit_bytes=limit_bytes)

    def placed(self, place: Callable[[str], str], changed: Callable[[str], None]) -> Workspace:
        """Return the same workspace with its files in other places."""
        return Workspace(
            self.names,
            self._roots,
            place=place,
            changed=changed,
            hidden=self._hidden,
            limit_bytes=self.limit_bytes,
            most=self._most,
        )

    @property
    def elsewhere(self) -> bool:
        """Whether changes go to other places than their paths: the real files stay as they are."""
        return self._place is not None

    def place(self, path: str) -> str:
        """Return the real place of an absolute path of the program."""
        return path if self._place is None else self._place(path)

    def wrote(self, path: str) -> None:
        """The run made or changed this file or folder: include it in looks, wherever it is."""
        if not is_workspace(path):
            return
        if path not in self._roots and not any(path.startswith(root + os.sep) for root in self._roots):
            self._roots[path] = None
        self.touched(path)

    def touched(self, *paths: str) -> None:
        """The program itself has changed these paths; the change is not a child's."""
        if self._last is not None:
            self._touched.update(dict.fromkeys(paths))

    def before(self) -> Look:
        """Return the present state as the program knows it: the last look and its own changes.

        Other changes since the last look count as done by the next child. Never raises.
        """
        with self._lock:
            if self._last is None:
                self._last = self.look()
            elif self._touched:
                touched, self._touched = self._touched, {}
                self._last = self._again(self._last, touched)
            return self._last

    def look(self) -> Look:
        """Return the present state: one ``lstat`` for each file and folder. Never raises."""
        found = self._look(self._roots)
        return Look(found.folders, found.unlooked or self._unlooked)

    def changes(self, before: Look) -> list[Change]:
        """Return the changes since ``before``: deletions first, then folders before their files."""
        return self.compared(before)[0]

    def compared(self, before: Look) -> tuple[list[Change], Unlooked]:
        """Return the changes, and why they may be incomplete."""
        with self._lock:
            self._touched = {}
            after = self._last = self.look()
        unlooked = before.unlooked or after.unlooked
        gone: dict[str, None] = {}
        there: dict[str, tuple[State | None, State]] = {}
        for folder in before.folders.keys() | after.folders.keys():
            if unlooked and folder and not _comparable(folder, before, after):
                continue
            was, now = before.folders.get(folder, {}), after.folders.get(folder, {})
            if was == now:
                continue
            gone.update((os.path.join(folder, name), None) for name in was if name not in now)
            for name, state in now.items():
                if was.get(name) != state:
                    there[os.path.join(folder, name)] = was.get(name), state
        found = [
            Change(self.names.short(path), "deleted")
            for path in sorted(gone, reverse=True)
            if not os.path.lexists(path) and not self._beside(path)
        ]
        for path in [path for path in there if self._beside(path)]:
            # The content of the log is in the snapshot of the database.
            del there[path]
            with contextlib.suppress(OSError):
                main = path.rpartition("-")[0]
                there.setdefault(main, (None, _state(os.lstat(main))))
        left = _Left()
        for path in sorted(there):
            with contextlib.suppress(OSError):
                found += self._change(path, *there[path], left)
        return found, unlooked or left.over

    def _look(self, roots: Iterable[str]) -> Look:
        places: dict[str, State] = {}
        found, left, end_s = {"": places}, self._most, _now_s() + LOOK_S
        waiting: list[str] = []
        for root in list(roots):
            with contextlib.suppress(OSError):
                places[root] = state = _state(os.lstat(root))
                left -= 1
                if stat.S_ISDIR(state[0]):
                    waiting.append(root)
        for folder in waiting:  # grows during the loop
            if folder in found:
                continue
            inside, folders = _inside(folder, left)
            if len(inside) > left:
                return Look(found, "entries")
            if _now_s() > end_s:
                return Look(found, "time")
            found[folder] = inside
            left -= len(inside)
            waiting += [one for one in folders if one not in self._hidden]
        return Look(found)

    def _again(self, last: Look, paths: Iterable[str]) -> Look:
        """``last`` with the present state of these paths."""
        folders, unlooked = dict(last.folders), last.unlooked
        own: set[str] = set()
        for path in paths:
            home, name = ("", path) if path in self._roots else os.path.split(path)
            if home not in folders:
                continue
            if home not in own:
                own.add(home)
                folders[home] = dict(folders[home])
            if path in folders:
                inside = path + os.sep
                for below in [one for one in folders if one == path or one.startswith(inside)]:
                    del folders[below]
            try:
                folders[home][name] = state = _state(os.lstat(path))
            except OSError:
                folders[home].pop(name, None)
                continue
            hidden = path in self._hidden or os.path.basename(path) in IGNORED
            if stat.S_ISDIR(state[0]) and not hidden:
                look = self._look([path])
                found, unlooked = look.folders, unlooked or look.unlooked
                folders |= {folder: found[folder] for folder in found if folder}
        return Look(folders, unlooked)

    def _change(self, path: str, was: State | None, now: State, left: _Left) -> Iterator[Change]:
        name, mode = self.names.short(path), now[0]
        same_kind = was is not None and stat.S_IFMT(was[0]) == stat.S_IFMT(mode)
        if stat.S_ISDIR(mode):
            if not same_kind or (was is not None and was[0] != mode):
                yield Change(name, "mode" if same_kind else "folder", mode)
        elif stat.S_ISLNK(mode):
            yield Change(name, "link", mode, os.fsencode(os.readlink(path)))
        elif stat.S_ISREG(mode):
            if was is not None and same_kind and was[1:] == now[1:]:
                yield Change(name, "mode", mode)
                return
            if not left.take(now[1]):
                yield Change(name, "written", mode, None, b"", now[1], now[2])
                return
            if now[1] > self.limit_bytes:
                yield Change(name, "written", mode, None, _digest_of(path), now[1], now[2])
                return
            data = sqlite_files.snapshot(path) if self.is_database(path) else _content(path, now[1])
            if data is None:
                return
            kept = data if len(data) <= self.limit_bytes else None
            yield Change(name, "written", mode, kept, digest_of(data), len(data), now[2])

    def _beside(self, path: str) -> bool:
        """Return whether the path is a side file of a database that this process has open."""
        main, dash, end = path.rpartition("-")
        return bool(dash) and dash + end in sqlite_files.BESIDE and self.is_database(main)

    def apply(self, changes: Iterable[Change]) -> None:
        """Make the same changes at the real places. Changes that fail are skipped."""
        for change in changes:
            path = os.path.normpath(self.names.long(change.path))
            try:
                place = str(inside(self.place(os.sep), path.lstrip(os.sep)))
                data = change.data if change.what == "written" and self.is_database(path) else None
                if data is not None and not os.path.islink(place):  # SQLite follows links
                    sqlite_files.take_over(data, place)
                else:
                    make(change, place)
            except (OSError, ValueError, PathOutside):
                continue
            if self._changed is not None:
                self._changed(path)


def _state(found: os.stat_result) -> State:
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino


def is_workspace(path: str) -> bool:
    """Return whether a path may be looked at: it is no folder of the system and not the user's home."""
    if path in SYSTEM or path.startswith(("/proc/", "/sys/", "/dev/")):
        return False
    return path != os.path.expanduser("~")


def _comparable(folder: str, before: Look, after: Look) -> bool:
    """For incomplete looks: whether the changes in a folder are known."""
    if folder in before.folders:
        return folder in after.folders or not os.path.isdir(folder)
    home, name = os.path.split(folder)
    if home in before.folders:
        return name not in before.folders[home]  # the folder is new
    return home != folder and home in after.folders and _comparable(home, before, after)


class _Left:
    """The remaining budget for reading what a child has written."""

    def __init__(self) -> None:
        self._bytes, self._end_s = CHANGED_BYTES, _now_s() + CHANGED_S
        self.over: Unlooked = ""
        """The limit that was exceeded; empty: none."""

    def take(self, size: int) -> bool:
        if size > self._bytes:
            self.over = self.over or "bytes"
        elif _now_s() > self._end_s:
            self.over = self.over or "time"
        else:
            self._bytes -= size
            return True
        return False


def _inside(folder: str, most: int) -> tuple[dict[str, State], list[str]]:
    """Return the entries of a folder by name, and the paths of the folders in it that are looked into.

    If there are more than ``most`` entries, gives ``most`` plus one.
    """
    states: dict[str, State] = {}
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(states) > most:
                    break
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                mode = found.st_mode
                states[entry.name] = mode, found.st_size, found.st_mtime_ns, found.st_ino
                if mode & _FOLDER and stat.S_ISDIR(mode) and entry.name not in IGNORED:
                    folders.append(entry.path)
    except OSError:
        pass
    return states, folders


def _content(path: str, size: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(size)  # excludes bytes that are still being appended


def _digest_of(path: str) -> bytes:
    hasher = blake3.blake3()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            hasher.update(piece)
    return hasher.digest()
