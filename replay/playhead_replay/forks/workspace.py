"""The folder that a fork works in: a copy of the run's folder as it was where the tape is cut.

What the tape knows is restored: files that the run wrote later are reset or removed. Everything else is
copied as it is now. When the fork is over, the folder gets the fork's name and is kept as long as the
run; a folder without changes is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead_core.errors import PathOutside, TapeError, UsageError
from playhead_core.facts import Fact
from playhead_core.file_names import below, inside
from playhead_core.tape.protocols import Tape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

LINKED = frozenset((".venv", "venv", "node_modules", ".tox"))
"""Folders that are not part of the run's work; the fork shares them with the original folder."""

LEFT_OUT = frozenset(("__pycache__",))

MOST_BYTES = 1 << 30
MOST_FILES = 50_000

FOLDER = "forks"
"""Subfolder of the data folder that holds these folders."""

LOCK = "forks.lock"
"""Lock file: held as shared by each running fork, and exclusively by a process that removes folders."""

Looks = dict[str, tuple[int, int]]
"""Size and modification time of each file, by path below a folder."""

BELOW = "./"
"""Prefix on the tape of paths below the folder of the run."""

MADE = ("file.mkdir", "file.symlink", "file.link")
GONE = ("file.remove", "file.unlink", "file.rmdir")
NOT_THERE = 2
"""ENOENT."""


def copied(folder: Path, whole: Tape, cut: Tape, data_dir: Path) -> Path:
    """A copy of ``folder`` under ``data_dir`` as it was at the end of ``cut``, a part of ``whole``.

    `UsageError` if it is too large to be copied; `PathOutside` if the tape claims that a file is below
    the folder and it is not.
    """
    _require_small(folder, data_dir)
    under = data_dir / FOLDER
    under.mkdir(parents=True, exist_ok=True, mode=0o700)
    copy = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=under))
    # Databases of the data folder are open in this process: to close a copied file drops its locks.
    kept_out = data_dir.resolve()
    for entry in os.scandir(folder.resolve()):
        if entry.name in LEFT_OUT or _is_inside(kept_out, Path(entry.path)):
            continue
        target = copy / entry.name
        if entry.name in LINKED:
            target.symlink_to(entry.path)
        elif entry.is_dir(follow_symlinks=False):
            shutil.copytree(entry.path, target, symlinks=True, ignore=_ignored, copy_function=_copy)
        else:
            _copy(entry.path, str(target))
    for path, state in states_at(whole, cut).items():
        try:
            _lay(inside(copy, path), copy, state)
        except PathOutside:
            if not below(path):
                shutil.rmtree(copy, ignore_errors=True)
                raise
            # The path leads through a link to a folder outside the copy, which must stay as it is.
    return copy


def folder_of_fork(data_dir: Path, name: str) -> Path | None:
    """The folder of the fork with this name; None if it has none."""
    if not name:
        return None
    found = inside(data_dir / FOLDER, name)
    return found if found.is_dir() else None


def looks(folder: Path) -> Looks:
    """Size and time of the files in a folder, except shared ones and those that Python generates."""
    found: Looks = {}
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in LINKED | LEFT_OUT]
        for name in (*files, *folders):
            path = os.path.join(where, name)
            with contextlib.suppress(OSError):
                seen = os.lstat(path)
                size, time_ns = (0, 0) if name in folders else (seen.st_size, seen.st_mtime_ns)
                found[os.path.relpath(path, folder)] = size, time_ns
    return found


def settled(copy: Path, before: Looks, name: str) -> Path | None:
    """Finish the folder of the fork ``name``. Returns its final path; None if nothing changed in it."""
    if not name or looks(copy) == before:
        shutil.rmtree(copy, ignore_errors=True)
        return None
    place = inside(copy.parent, name)
    try:
        copy.rename(place)
    except OSError:
        return copy
    return place


@contextlib.contextmanager
def under_way(data_dir: Path) -> Generator[None]:
    """Context of a running fork: no fork folder is removed during it."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(data_dir / LOCK, "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def sweep(data_dir: Path, names: Callable[[], Collection[str]]) -> list[Path]:
    """Remove the folders of forks whose runs no longer exist; does nothing while a fork is running.

    ``names``: returns the names of all runs; called only if there is a folder.
    """
    under = data_dir / FOLDER
    if not under.is_dir() or not any(under.iterdir()):
        return []
    with open(data_dir / LOCK, "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return []
        known = names()
        gone = [one for one in under.iterdir() if one.name not in known]
        for folder in gone:
            shutil.rmtree(folder, ignore_errors=True)
    return gone


@dataclass(slots=True)
class FileState:
    """State of a file when the tape was cut."""

    there: bool = True
    data: bytes | None = None
    """Its content, if known."""
    size: int | None = None
    """Its size, if only that is known: nothing but its end has changed since."""


def states_at(whole: Tape, cut: Tape) -> dict[str, FileState]:
    """What the tape knows about files below the folder of the run, by path."""
    states: dict[str, FileState] = {}
    last = -1
    large = _large(whole)
    for fact in cut.facts():
        last = fact.seq
        before = dict(states) if _renames(fact) else states
        for path, kind in _about(fact):
            _happens(states, path, kind, _told(fact, large), whole)
        if before is not states:
            _moves(states, before, [path for path, _ in _about(fact)])
    before = set(states)
    seen: set[str] = set()
    for fact in whole.facts(last):
        for path, kind in _about(fact):
            if path in before:
                # The state at the cut is known; if the content is not, the recorded offset gives the
                # size.
                if kind == "file/open-append" and states[path].data is None and path not in seen:
                    states[path].size = int(fact.attributes.get(a.PLAYHEAD_FILE_OFFSET, 0))
            elif path not in seen:
                _is_first(states, path, kind, _told(fact, large), whole)
            seen.add(path)
    return states


def _renames(fact: Fact) -> bool:
    kind = fact.attributes.get(a.PLAYHEAD_EFFECT_KIND)
    return fact.name == e.PLAYHEAD_EFFECT and kind == "file.rename"


def _moves(states: dict[str, FileState], before: dict[str, FileState], ends: list[str]) -> None:
    """A file keeps its content where it is renamed to; what lies in a folder goes with it.

    ``ends``: the old and the new path; one alone where the other lies outside the folder of the run.
    """
    if len(ends) != 2:
        return
    old, new = ends
    for path, state in before.items():
        if path == old:
            states[new] = state
        elif path.startswith(f"{old}/"):
            states[path] = FileState(there=False)
            states[new + path[len(old) :]] = state


def _large(tape: Tape) -> dict[Any, Fact]:
    """Facts with the content of large opened files, by number."""
    return {
        fact.attributes.get(a.PLAYHEAD_FILE_CONTENT): fact
        for fact in tape.facts()
        if str(fact.attributes.get(a.PLAYHEAD_READ_KIND, "")).startswith("file/content ")
    }


def _told(fact: Fact, large: dict[Any, Fact]) -> Fact:
    return large.get(fact.attributes.get(a.PLAYHEAD_FILE_CONTENT, 0), fact)


def _about(fact: Fact) -> Iterator[tuple[str, str]]:
    at = fact.attributes
    if fact.name == e.PLAYHEAD_READ:
        kind, _, target = str(at.get(a.PLAYHEAD_READ_KIND, "")).partition(" ")
        found = kind.startswith("file/open")
    elif fact.name == e.PLAYHEAD_EFFECT:
        kind, target = str(at.get(a.PLAYHEAD_EFFECT_KIND, "")), str(at.get(a.PLAYHEAD_EFFECT_TARGET, ""))
        found = kind.startswith("file.")
    else:
        return
    if not found:
        return
    if kind == "file.rename":
        first, _, second = target.partition(f" {BELOW}")
        if first.startswith(BELOW):
            yield first[len(BELOW) :], "file.remove"
        if second:
            yield second, kind
    elif target.startswith(BELOW):
        yield target[len(BELOW) :], kind


def _happens(states: dict[str, FileState], path: str, kind: str, fact: Fact, tape: Tape) -> None:
    """Apply a fact from the played part: the state of the file from then on."""
    before = states.get(path)
    failed = fact.attributes.get(a.PLAYHEAD_FILE_ERROR)
    if kind in ("file/open", "file/open-update"):
        if failed == NOT_THERE:
            states[path] = FileState(there=False)
        elif fact.body is not None and fact.body.digest:
            states[path] = FileState(data=_read(tape, fact))
    elif kind == "file.write":
        states[path] = FileState(data=_read(tape, fact))
    elif kind == "file.append":
        start, tail = int(fact.attributes.get(a.PLAYHEAD_FILE_OFFSET, 0)), _read(tape, fact) or b""
        known = before.data if before is not None else b"" if not start else None
        if known is not None and len(known) >= start:
            states[path] = FileState(data=known[:start] + tail)
        else:
            states[path] = FileState(size=start + len(tail))
    elif kind in GONE:
        states[path] = FileState(there=False)
    elif kind in (*MADE, "file.rename"):
        states[path] = FileState()


def _is_first(states: dict[str, FileState], path: str, kind: str, fact: Fact, tape: Tape) -> None:
    """Infer a file's state at the cut from its first fact, which is in the part that is not played."""
    failed = fact.attributes.get(a.PLAYHEAD_FILE_ERROR)
    if kind in ("file/open", "file/open-update") and failed is None:
        if fact.body is not None and fact.body.digest:
            states[path] = FileState(data=_read(tape, fact))
    elif kind == "file/open-append" and failed is None:
        size = fact.attributes.get(a.PLAYHEAD_FILE_OFFSET)
        states[path] = FileState(there=False) if size is None else FileState(size=int(size))
    elif failed == NOT_THERE or kind in MADE:
        states[path] = FileState(there=False)


def _read(tape: Tape, fact: Fact) -> bytes | None:
    if fact.body is None or not (fact.body.digest or fact.body.inline is not None):
        return None
    try:
        return tape.read(fact.body)
    except TapeError:
        return None


def _lay(path: Path, copy: Path, state: FileState) -> None:
    if path.is_symlink() and state.there and not _is_inside(path.resolve(), copy.resolve()):
        if state.data is None:
            return
        path.unlink()
    with contextlib.suppress(OSError):
        if not state.there:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        elif state.data is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(state.data)
        elif state.size is not None and path.is_file() and path.stat().st_size > state.size:
            os.truncate(path, state.size)


def _copy(source: str, target: str) -> str:
    """Copy a file, or a link as a link; other kinds (sockets, pipes) are left out."""
    if os.path.islink(source) or os.path.isfile(source):
        shutil.copy2(source, target, follow_symlinks=False)
    return target


def _ignored(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in LEFT_OUT}


def _is_inside(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _require_small(folder: Path, data_dir: Path) -> None:
    size = count = 0
    folder, data_dir = folder.resolve(), data_dir.resolve()
    for where, folders, files in os.walk(folder):
        folders[:] = [
            name for name in folders if name not in LINKED | LEFT_OUT and Path(where, name) != data_dir
        ]
        for name in files:
            with contextlib.suppress(OSError):
                size, count = size + os.lstat(os.path.join(where, name)).st_size, count + 1
        if size > MOST_BYTES or count > MOST_FILES:
            raise UsageError(
                f"{folder} is too large to be copied for a fork",
                cause=f"more than {MOST_BYTES >> 30} GiB or {MOST_FILES} files",
                hint="work in it as it is: --in-place",
            )
