"""The files that a run works on: how they look, what has changed since, and that change made again.

A child process changes files behind our back. Whoever starts one looks before and after; a replay, which
starts none, applies the difference to its scratch folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from playhead_instrumentation import databases
from playhead_semconv.facts import digest_of

IGNORED: Final = frozenset((".venv", "__pycache__", "node_modules"))
"""Folders that are not looked into."""

MOST: Final = 50_000
"""So many files and folders are looked at, those near the roots first."""

LIMIT_BYTES: Final = 16 << 20
"""Of a larger file the digest is kept, and not the content."""

State: TypeAlias = tuple[int, int, int, int]
"""Mode, size in bytes, time of the last change in ns, inode."""

What: TypeAlias = Literal["folder", "written", "mode", "link", "deleted"]


class Names:
    """Paths as they stand on tape: below the folder of the run ``./…``, below the home ``~/…``."""

    def __init__(self, cwd: str, home: str, *, recorded_cwd: str = "") -> None:
        """``recorded_cwd``: at replay, the folder of the run as the program may know it too."""
        places = (cwd, "."), (recorded_cwd, "."), (home, "~")
        self._places = [(here, sign) for here, sign in places if len(here) > 1]

    def short(self, path: str) -> str:
        """The name of an absolute path."""
        for here, sign in self._places:
            if path.startswith(here) and path[len(here) :][:1] in ("", "/"):
                return sign + path[len(here) :]
        return path

    def long(self, name: str) -> str:
        """The absolute path of a name."""
        for here, sign in self._places:
            if name[:1] == sign and name[1:2] in ("", "/"):
                return here + name[1:]
        return name


class Change(msgspec.Struct, frozen=True, array_like=True):
    """Something in the workspace that is not any more as it was. Stands on tape as MessagePack."""

    path: str
    """Its name, see `Names`."""
    what: What
    mode: int = 0
    """Type and permissions, as ``st_mode`` has them."""
    data: bytes | None = None
    """The content of what was written, where it is not too large; the target of a link."""
    digest: bytes = b""
    """BLAKE3 of the content of what was written."""
    size: int = 0
    mtime_ns: int = 0


class Look(msgspec.Struct, frozen=True):
    """What lay there at a moment."""

    states: dict[str, State]
    """By absolute path."""
    whole: bool = True
    """False: there was more than is looked at."""


class Workspace:
    """The folders of a run. Safe from any thread."""

    def __init__(
        self,
        names: Names,
        roots: Iterable[str] = (),
        *,
        place: Callable[[str], str] | None = None,
        changed: Callable[[str], None] | None = None,
        limit_bytes: int = LIMIT_BYTES,
        most: int = MOST,
    ) -> None:
        """``roots``: absolute paths. ``place``: where a path really lies, by default where it says.

        ``changed``: told of each path that `apply` changes.
        """
        self.names: Final = names
        self._roots: dict[str, None] = dict.fromkeys(roots)
        self._place = place
        self._changed = changed
        self._limit_bytes = limit_bytes
        self._most = most
        self.is_database: Callable[[str], bool] = lambda path: False
        """Whether this process has a database of SQLite open there: nobody else may open that file."""

    @classmethod
    def of_process(cls, limit_bytes: int = LIMIT_BYTES, *, recorded_cwd: str = "") -> Workspace:
        """Of the folder that this process works in."""
        cwd = os.getcwd()
        names = Names(cwd, os.path.expanduser("~"), recorded_cwd=recorded_cwd)
        return cls(names, [cwd], limit_bytes=limit_bytes)

    def placed(self, place: Callable[[str], str], changed: Callable[[str], None]) -> Workspace:
        """The same, whose paths really lie elsewhere."""
        return Workspace(
            self.names,
            self._roots,
            place=place,
            changed=changed,
            limit_bytes=self._limit_bytes,
            most=self._most,
        )

    @property
    def elsewhere(self) -> bool:
        """Whether what is changed lies elsewhere than its path says: the real files stay as they are."""
        return self._place is not None

    def place(self, path: str) -> str:
        """Where an absolute path of the program really lies."""
        return path if self._place is None else self._place(path)

    def wrote(self, path: str) -> None:
        """The run made or changed this file or folder: it is looked at too, wherever it lies."""
        if path not in self._roots and not any(path.startswith(root + os.sep) for root in self._roots):
            self._roots[path] = None

    def look(self) -> Look:
        """How everything looks now: one ``lstat`` each. Never raises."""
        states: dict[str, State] = {}
        waiting = deque(self._roots)
        for root in waiting:
            with contextlib.suppress(OSError):
                states[root] = _state(os.lstat(root))
        while waiting:
            folder = waiting.popleft()
            if not stat.S_ISDIR(states.get(folder, (0,))[0]):
                continue
            for path, found in _inside(folder):
                if len(states) >= self._most:
                    return Look(states, whole=False)
                states[path] = found
                if stat.S_ISDIR(found[0]) and os.path.basename(path) not in IGNORED:
                    waiting.append(path)
        return Look(states)

    def changes(self, before: Look) -> list[Change]:
        """What is not as it was: first what is gone, then what is there, folders before their files."""
        after = self.look()
        gone = sorted(set(before.states) - set(after.states), reverse=True)
        found = [Change(self.names.short(path), "deleted") for path in gone if not os.path.lexists(path)]
        for path in sorted(after.states):
            was, now = before.states.get(path), after.states[path]
            if self.is_database(path) and was is not None:
                # What its log says, it says.
                log = f"{path}-wal"
                was = was if before.states.get(log) == after.states.get(log) else (was[0], 0, 0, 0)
            if was != now and not self._beside(path):
                with contextlib.suppress(OSError):
                    found += self._change(path, was, now)
        return found

    def _change(self, path: str, was: State | None, now: State) -> Iterator[Change]:
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
            data = databases.snapshot(path) if self.is_database(path) else _content(path)
            if data is None:
                return
            kept = data if len(data) <= self._limit_bytes else None
            yield Change(name, "written", mode, kept, digest_of(data), len(data), now[2])

    def _beside(self, path: str) -> bool:
        """Whether it belongs to a database that this process has open."""
        main, dash, end = path.rpartition("-")
        return bool(dash) and dash + end in databases.BESIDE and self.is_database(main)

    def apply(self, changes: Iterable[Change]) -> None:
        """Make the same changes where the paths really lie. What cannot be done is left out."""
        for change in changes:
            path = self.names.long(change.path)
            try:
                if change.what == "written" and change.data is not None and self.is_database(path):
                    databases.take_over(change.data, self.place(path))
                else:
                    _make(change, self.place(path))
            except OSError:
                continue
            if self._changed is not None:
                self._changed(path)


def _state(found: os.stat_result) -> State:
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino


def _inside(folder: str) -> Iterator[tuple[str, State]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    yield entry.path, _state(entry.stat(follow_symlinks=False))
    except OSError:
        return


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _make(change: Change, path: str) -> None:
    is_folder = os.path.isdir(path) and not os.path.islink(path)
    if change.what == "mode":
        os.chmod(path, stat.S_IMODE(change.mode))
        return
    if change.what == "folder":
        if not is_folder:
            _remove(path)
            os.makedirs(path, exist_ok=True)
        os.chmod(path, stat.S_IMODE(change.mode) | stat.S_IRWXU)
        return
    _remove(path)
    if change.what == "deleted":
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if change.what == "link":
        os.symlink(os.fsdecode(change.data or b""), path)
        return
    if change.data is None:
        with open(path, "wb") as file:
            file.truncate(change.size)
    else:
        with open(path, "wb") as file:
            file.write(change.data)
    os.chmod(path, stat.S_IMODE(change.mode))
    os.utime(path, ns=(change.mtime_ns, change.mtime_ns))


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)
