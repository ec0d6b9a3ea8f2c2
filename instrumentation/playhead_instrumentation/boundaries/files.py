"""Files: what the program reads, lists, writes, renames and deletes.

Covered are `open` and the functions of `os` that take a path, and so what rests on them: pathlib,
shutil, tempfile, glob, logging. A descriptor is a real one, of the file or of its like in the scratch
folder; what goes through it is not watched, but what it leaves when it is closed is an effect.
"""

from __future__ import annotations

import builtins
import errno
import functools
import importlib
import io
import os
import stat
import sys
import weakref
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Final, cast

from playhead_instrumentation.boundaries import readers
from playhead_instrumentation.boundaries.ambient import getframe
from playhead_instrumentation.boundaries.files_readers import (
    DEVICES,
    PACKAGES,
    PLACES,
    by_agent,
)
from playhead_instrumentation.boundaries.readers import AGENT, MACHINERY, THROUGH
from playhead_instrumentation.drivers.files import Files
from playhead_instrumentation.patches import Patches, required
from playhead_instrumentation.session import Session

Answer = Callable[..., Any]
"""``answer(files, live, *arguments)`` gives the result of a covered function."""

REBOUND: Final = ("fileinput", "glob", "logging", "pathlib", "shutil", "tarfile", "tempfile", "zipfile")
"""Modules that may hold the functions under names of their own."""

_os_open: Final = os.open
_os_close: Final = os.close
_stat: Final = os.stat

# Beneath these frames the program's own opener may run.
PLACES[__file__] = readers.PLACES[__file__] = THROUGH

_files: Files | None = None
"""Of the last session, also when it has ended: a replay writes to its scratch folder to the very end."""


def watch(patches: Patches, session: Session) -> None:
    """Cover files; at a replay, keep the program away from the real ones."""
    global _files
    _files = session.driver.files
    patches.attempt("files", _cover)
    patches.attempt("tempfile folder", functools.partial(_cover_tempdir, session))


def answered_by(session: Session) -> None:
    """After a fork: who answers in this process."""
    global _files
    _files = session.driver.files


def release() -> None:
    """Let the process work on files as before, where it goes on after a session."""
    global _files
    _files = None


def asked() -> Files | None:
    """Who answers now; None where nobody does."""
    return None if _files is None or _files.ended else _files


class Covered:
    """Stands in the place of a function of C, under the same name; see `ambient.Ambient`."""

    def __init__(self, original: Callable[..., Any], answer: Answer) -> None:
        self.__wrapped__ = original
        self.__doc__ = original.__doc__
        self.__name__ = original.__name__
        self.__qualname__ = original.__name__
        self.__module__ = original.__module__
        self.__text_signature__ = getattr(original, "__text_signature__", None)
        self._live = original
        self._answer = answer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the original gives, or the driver in its stead."""
        frame = getframe(1)
        place = PLACES.get(frame.f_code.co_filename)
        if place == MACHINERY or (place != AGENT and not by_agent(frame)):
            return self._live(*args, **kwargs)
        files = _files
        if files is None or files.ended:
            return self._live(*args, **kwargs)
        try:
            return self._answer(files, self._live, *args, **kwargs)
        except OSError as problem:
            if args and problem.filename is not None and problem.filename2 is None:
                # As the program has named it; a replay knows absolute paths.
                problem.filename = args[0]
            raise

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


def absolute(files: Files, path: Any, dir_fd: int | None = None) -> str | None:
    """The path that the program means; None where it is not covered."""
    if isinstance(path, int):
        return files.folder_of(path)
    name = os.fsdecode(path)
    if name[:1] != "/":
        base = files.cwd() if dir_fd is None else files.folder_of(dir_fd)
        if base is None or not name:
            return None
        name = f"{base}/{name}"
    elif name.startswith(DEVICES):
        return None
    return os.path.normpath(name).replace("//", "/", 1)


def _covered(files: Files, path: Any, dir_fd: int | None = None) -> str | None:
    """The same for what only reads: what is installed is not covered."""
    name = absolute(files, path, dir_fd)
    if name is not None and name.startswith(PACKAGES) and not files.touched(name):
        return None
    return name


def _querying(op: str, out: Callable[[Any], Any], back: Callable[[Any], Any]) -> Answer:
    """A function whose result is a plain value when it went through ``out``; ``back`` undoes that."""

    def answer(files: Files, live: Any, path: Any = ".", *args: Any, **kwargs: Any) -> Any:
        name = _covered(files, "." if path is None else path, kwargs.get("dir_fd"))
        if name is None:
            return live(path, *args, **kwargs)
        found: list[Any] = []

        def real(place: str | None) -> Any:
            if place is None:
                found.append(live(path, *args, **kwargs))
            else:
                kwargs.pop("dir_fd", None)
                found.append(live(place, *args, **kwargs))
            return out(found[-1])

        asked = op
        if args:
            asked = f"{op} {args[0]!r}"
        if kwargs.get("follow_symlinks") is False:
            asked = "lstat" if op == "stat" else f"l{op}"
        value = files.query(asked, name, real)
        return found[-1] if found else back(value)

    return answer


def _changing(op: str, detail: Callable[..., str] | None = None) -> Answer:
    """A function that changes what lies at its first argument."""

    def answer(files: Files, live: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        name = absolute(files, path, kwargs.get("dir_fd"))
        if name is None:
            return live(path, *args, **kwargs)

        def real(place: str | None) -> Any:
            if place is None:
                return live(path, *args, **kwargs)
            kwargs.pop("dir_fd", None)
            return live(place, *args, **kwargs)

        files.change(op, name, real, "" if detail is None else detail(*args, **kwargs))
        return None

    return answer


def _renaming(op: str) -> Answer:
    """A function of two paths."""

    def answer(files: Files, live: Any, src: Any, dst: Any, **kwargs: Any) -> Any:
        one = absolute(files, src, kwargs.get("src_dir_fd"))
        other = absolute(files, dst, kwargs.get("dst_dir_fd"))
        if one is None or other is None:
            return live(src, dst, **kwargs)

        def real(place: str | None) -> Any:
            if place is None:
                return live(src, dst, **kwargs)
            return live(place, files.workspace.place(other))

        try:
            files.change(op, one, real, other)
        except OSError as problem:
            if problem.filename2 is None and problem.errno is not None:
                problem.filename, problem.filename2 = src, dst
            raise
        return None

    return answer


def _symlinking(files: Files, live: Any, src: Any, dst: Any, *args: Any, **kwargs: Any) -> Any:
    name = absolute(files, dst, kwargs.get("dir_fd"))
    if name is None:
        return live(src, dst, *args, **kwargs)

    def real(place: str | None) -> Any:
        return live(src, dst, *args, **kwargs) if place is None else live(src, place)

    return files.change("symlink", name, real, os.fsdecode(src))


def _opening(files: Files, live: Any, path: Any, flags: int, mode: int = 0o777, **kwargs: Any) -> int:
    name = absolute(files, path, kwargs.get("dir_fd"))
    if name is None or (name.startswith(PACKAGES) and not flags & _WRITING and not files.touched(name)):
        return live(path, flags, mode, **kwargs)
    if flags & _UNNAMED == _UNNAMED:
        return _unnamed(files, live, path, name, flags, mode, kwargs)

    def real(place: str | None, flags: int) -> int:
        return live(path, flags, mode, **kwargs) if place is None else live(place, flags, mode)

    return files.open(name, flags, mode, real)


def _unnamed(
    files: Files, live: Any, path: Any, name: str, flags: int, mode: int, kwargs: dict[str, Any]
) -> int:
    """A file that never has a name is nobody's business: it lies wherever the system lets it."""
    made: list[int] = []

    def real(place: str | None) -> bool:
        made.append(live(path if place is None else place, flags, mode, **kwargs))
        return True

    files.query("tmpfile", name, real)
    if not made:
        made.append(os.memfd_create("unnamed"))
    return made[0]


_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_UNNAMED: Final = getattr(os, "O_TMPFILE", 1 << 62)


def _open_stream(
    files: Files,
    live: Any,
    file: Any,
    mode: Any = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """See `open`."""
    arguments = (mode, buffering, encoding, errors, newline, closefd)
    if opener is not None or isinstance(file, int):
        stream = live(file, *arguments, opener)
    else:
        reading = isinstance(mode, str) and not set(mode) & {"w", "a", "x", "+"}
        name = _covered(files, file) if reading else absolute(files, file)
        if name is None:
            return live(file, *arguments, opener)

        def real(path: Any, flags: int) -> int:
            return files.open(name, flags, 0o666, functools.partial(_really, path))

        stream = live(file, *arguments, real)
        if reading:
            return stream
    _settle_when_closed(files, stream, closefd)
    return stream


def _really(path: Any, place: str | None, flags: int) -> int:
    return _os_open(path if place is None else place, flags, 0o666)


def _settle_when_closed(files: Files, stream: Any, closefd: bool) -> None:
    """Have `Files.closing` called by what closes the file, whatever layer of the stream is closed.

    The raw file closes through its attribute ``close``, also when it is collected. It may not be held by
    what stands there, or it would be collected later than before.
    """
    try:
        fd = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return
    if not closefd or files.folder_of(fd) is None:
        return
    raw = getattr(stream, "buffer", stream)
    raw = getattr(raw, "raw", raw)
    if not isinstance(raw, io.FileIO):
        return
    alive = weakref.ref(raw)
    left = [fd]

    def close() -> None:
        found = alive()
        if left and not (found is not None and found.closed):
            files.closing(left.pop())
            if found is None:
                _os_close(fd)
        if found is not None:
            io.FileIO.close(found)

    cast("Any", raw).close = close


def _closing(original: Any) -> Any:
    @functools.wraps(original)
    def close(fd: Any) -> None:
        if (
            _files is not None
            and not _files.ended
            and isinstance(fd, int)
            and _files.folder_of(fd) is not None
        ):
            _files.closing(fd)
        original(fd)

    return close


class Entry:
    """What `os.scandir` gives: like `os.DirEntry`."""

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

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder."""
        return self._is(stat.S_IFDIR, follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a regular file."""
        return self._is(stat.S_IFREG, follow_symlinks)

    def is_symlink(self) -> bool:
        """Whether it is a symbolic link."""
        return self._kind == stat.S_IFLNK

    def is_junction(self) -> bool:
        """Not on this system."""
        return False

    def inode(self) -> int:
        """The number of its inode."""
        return self.inode_number

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """See `os.stat`."""
        if _files is None:
            return _stat(self._name, follow_symlinks=follow_symlinks)
        return _stats(_files, _stat, self._name, follow_symlinks=follow_symlinks)

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
        """No more."""
        self._entries = iter([])


def _scanning(files: Files, live: Any, path: Any = None) -> Any:
    path = "." if path is None else path
    name = _covered(files, path)
    if name is None:
        return live(path)

    def real(place: str | None) -> list[list[Any]]:
        with live(
            os.fspath(path) if place is None and not isinstance(path, int) else place or path
        ) as it:
            return [[os.fsdecode(one.name), _kind_of(one), one.inode()] for one in it]

    found = files.query("scandir", name, real)
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


def _moving(files: Files, live: Any, path: Any) -> None:
    name = absolute(files, path)
    if name is None:
        return live(path)

    def real(place: str | None) -> None:
        if place is None:
            live(path)
        elif not os.path.isdir(place):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    files.query("chdir", name, real)
    files.moved(name)


def _working(files: Files, live: Any) -> str:
    return files.cwd()


def _working_bytes(files: Files, live: Any) -> bytes:
    return os.fsencode(files.cwd())


def _parts(found: Any) -> Any:
    _, (values, named) = found.__reduce__()[:2]
    return [list(values), named]


def _stat_of(value: Any) -> os.stat_result:
    return os.stat_result(tuple(value[0]), value[1])


def _statvfs_of(value: Any) -> os.statvfs_result:
    return os.statvfs_result(tuple(value[0]), value[1])


def _same(value: Any) -> Any:
    return value


def _names_in(original: Any) -> Any:
    """Names that are bytes were asked for with bytes; on tape both are what they are."""
    return list(original)


def _details(*args: Any, **kwargs: Any) -> str:
    said = [repr(one) for one in args]
    said += [f"{name}={kwargs[name]!r}" for name in sorted(kwargs) if name not in ("dir_fd",)]
    return ", ".join(said)


_stats: Final = _querying("stat", _parts, _stat_of)


def _answers() -> dict[str, Answer]:
    answers: dict[str, Answer] = {
        "stat": _stats,
        "lstat": _querying("lstat", _parts, _stat_of),
        "fstat": _querying("fstat", _parts, _stat_of),
        "statvfs": _querying("statvfs", _parts, _statvfs_of),
        "access": _querying("access", _same, _same),
        "listdir": _querying("listdir", _names_in, _names_in),
        "readlink": _querying("readlink", _same, _same),
        "getxattr": _querying("getxattr", _same, _same),
        "listxattr": _querying("listxattr", _names_in, _names_in),
        "scandir": _scanning,
        "open": _opening,
        "mkdir": _changing("mkdir"),
        "rmdir": _changing("rmdir"),
        "unlink": _changing("unlink"),
        "remove": _changing("unlink"),
        "chmod": _changing("chmod", _details),
        "chown": _changing("chown", _details),
        "utime": _changing("utime", _details),
        "truncate": _changing("truncate", _details),
        "setxattr": _changing("setxattr", _details),
        "removexattr": _changing("removexattr", _details),
        "mkfifo": _changing("mkfifo"),
        "chdir": _moving,
        "rename": _renaming("rename"),
        "replace": _renaming("rename"),
        "link": _renaming("link"),
        "symlink": _symlinking,
        "getcwd": _working,
        "getcwdb": _working_bytes,
    }
    return answers


def _cover() -> None:
    if isinstance(os.open, Covered):
        return
    covered: dict[int, Any] = {}
    module: Any = os
    for name, answer in _answers().items():
        original = getattr(module, name, None)
        if original is None:
            continue
        ours = Covered(original, answer)
        ours.__module__ = "os"
        covered[id(original)] = ours
        setattr(module, name, ours)
        for able in ("supports_dir_fd", "supports_fd", "supports_follow_symlinks"):
            if original in getattr(os, able):
                getattr(os, able).add(ours)
    opened = Covered(builtins.open, _open_stream)
    opened.__module__ = "builtins"
    covered[id(builtins.open)] = opened
    builtins.open = io.open = cast("Any", opened)
    os.close = covered[id(_os_close)] = _closing(_os_close)
    for name in REBOUND:
        if name in sys.modules:
            _rebind(importlib.import_module(name), covered)


def _rebind(module: Any, covered: dict[int, Any]) -> None:
    """Put ours where a module holds an original: as a global, or as the default of an argument."""
    holding = dict(cast("dict[str, Any]", vars(module)))
    for name, value in holding.items():
        if id(value) in covered:
            setattr(module, name, covered[id(value)])
        owned = cast("dict[str, Any]", vars(value)) if isinstance(value, type) else {name: value}
        for function in owned.values():
            if isinstance(function, FunctionType) and function.__defaults__:
                found = tuple(covered.get(id(one), one) for one in function.__defaults__)
                if found != function.__defaults__:
                    function.__defaults__ = found


def _cover_tempdir(session: Session) -> None:
    """Which folder is for temporary files is found by writing to it; that is not the program's doing."""
    import tempfile

    module: Any = tempfile
    original = required(module, "_get_default_tempdir")
    original = getattr(original, "__wrapped__", original)

    @functools.wraps(original)
    def folder() -> str:
        return session.driver.reads.read("entropy/tempfile.tempdir", original)

    module._get_default_tempdir = folder
