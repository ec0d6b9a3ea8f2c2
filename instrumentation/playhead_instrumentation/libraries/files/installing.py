"""Patches of file functions: reading, listing, writing, renaming and deleting.

`open` and the functions of `os` that take a path are covered, and so is everything built on them:
pathlib, shutil, tempfile, glob, logging. Descriptors are real: of the file, or of its copy in the
scratch folder. What passes through a descriptor is not watched; the content at its close is an effect.
"""

from __future__ import annotations

import builtins
import errno
import functools
import importlib
import io
import os
import sys
import tempfile
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, cast

from playhead_instrumentation.libraries.files.covered import (
    Covered,
    ToAnswer,
    absolute,
    answered_by,
    parts_of,
    querying,
    stat_of,
)
from playhead_instrumentation.libraries.files.listing import scanning, stats
from playhead_instrumentation.libraries.files.opening import closing, open_stream, opening
from playhead_instrumentation.libraries.files.readers import PLACES
from playhead_instrumentation.libraries.files.recorded import Files
from playhead_instrumentation.patching.attribution import readers
from playhead_instrumentation.patching.attribution.readers import THROUGH
from playhead_instrumentation.patching.builtins import genuine
from playhead_instrumentation.patching.patches import Patches, required
from playhead_instrumentation.session.session import Session

REBOUND: Final = ("fileinput", "glob", "logging", "pathlib", "shutil", "tarfile", "tempfile", "zipfile")
"""Modules that may hold references to the functions under names of their own."""

_os_close: Final = os.close

# The program's own opener may run below these frames.
PLACES[__file__] = readers.PLACES[__file__] = THROUGH


def watch(patches: Patches, session: Session) -> None:
    """Cover file functions. Replay: keep the program away from the real files."""
    answered_by(session)
    patches.attempt("files", functools.partial(_cover, patches))
    patches.attempt("tempfile folder", functools.partial(_cover_tempdir, patches, session))


def _changing(op: str, detail: Callable[..., str] | None = None) -> ToAnswer:
    """Return the answer for a function that changes the file at its first argument."""

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


def _renaming(op: str) -> ToAnswer:
    """Return the answer for a function with two paths."""

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


def _statvfs_of(value: Any) -> os.statvfs_result:
    return os.statvfs_result(tuple(value[0]), value[1])


def _same(value: Any) -> Any:
    return value


def _names_in(original: Any) -> Any:
    """Return the names as a list: bytes if the argument was bytes; the tape stores either type."""
    return list(original)


def _details(*args: Any, **kwargs: Any) -> str:
    said = [repr(one) for one in args]
    said += [f"{name}={kwargs[name]!r}" for name in sorted(kwargs) if name not in ("dir_fd",)]
    return ", ".join(said)


def _answers() -> dict[str, ToAnswer]:
    answers: dict[str, ToAnswer] = {
        "stat": stats,
        "lstat": querying("lstat", parts_of, stat_of),
        "fstat": querying("fstat", parts_of, stat_of),
        "statvfs": querying("statvfs", parts_of, _statvfs_of),
        "access": querying("access", _same, _same),
        "listdir": querying("listdir", _names_in, _names_in, "."),
        "readlink": querying("readlink", _same, _same),
        "getxattr": querying("getxattr", _same, _same),
        "listxattr": querying("listxattr", _names_in, _names_in, "."),
        "scandir": scanning,
        "open": opening,
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


def _cover(patches: Patches) -> None:
    if isinstance(os.open, Covered):
        return
    covered: dict[int, Any] = {}
    module: Any = os
    for name, answer in _answers().items():
        original = getattr(module, name, None)
        if original is None:
            continue
        ours = genuine(original, Covered(original, answer))
        covered[id(original)] = ours
        _put(patches, module, name, original, ours)
        for able in ("supports_dir_fd", "supports_fd", "supports_follow_symlinks"):
            if original in getattr(os, able):
                getattr(os, able).add(ours)
    original = builtins.open
    covered[id(original)] = opened = genuine(original, Covered(original, open_stream))
    for place in (builtins, io, sys.modules["_io"]):
        patches.put(place, "open", opened)
    covered[id(_os_close)] = close = genuine(_os_close, closing(_os_close))
    _put(patches, os, "close", _os_close, close)
    for name in REBOUND:
        if name in sys.modules:
            _rebind(patches, importlib.import_module(name), covered)


def _put(patches: Patches, module: Any, name: str, original: Any, ours: Any) -> None:
    """Patch the module, and the module in the function's ``__module__``, where `pickle` looks it up."""
    patches.put(module, name, ours)
    home = sys.modules.get(original.__module__)
    if home is not module and getattr(home, original.__name__, None) is original:
        patches.put(home, original.__name__, ours)


def _rebind(patches: Patches, module: Any, covered: dict[int, Any]) -> None:
    """Replace originals that a module holds: as global, static method or default of an argument."""
    holding = dict(cast("dict[str, Any]", vars(module)))
    for name, value in holding.items():
        if id(value) in covered:
            patches.put(module, name, covered[id(value)])
        owned = dict(cast("dict[str, Any]", vars(value))) if isinstance(value, type) else {name: value}
        for own, function in owned.items():
            if isinstance(function, staticmethod) and id(function.__func__) in covered:
                patches.put(value, own, staticmethod(covered[id(function.__func__)]))
            if isinstance(function, FunctionType) and function.__defaults__:
                found = tuple(covered.get(id(one), one) for one in function.__defaults__)
                if found != function.__defaults__:
                    function.__defaults__ = found


def _cover_tempdir(patches: Patches, session: Session) -> None:
    """Hide the search for a temporary folder, which probes by writing and is not the program's."""
    module: Any = tempfile
    original = required(module, "_get_default_tempdir")
    original = getattr(original, "__wrapped__", original)

    @functools.wraps(original)
    def folder() -> str:
        return session.driver.reads.read("entropy/tempfile.tempdir", original)

    patches.put(module, "_get_default_tempdir", folder)
