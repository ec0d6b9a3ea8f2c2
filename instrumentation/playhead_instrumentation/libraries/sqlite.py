"""SQLite databases in files: `sqlite3.connect`, and so aiosqlite, SQLAlchemy and checkpoint savers.

SQLite itself runs in a recording and in a replay. The content of the file when it was opened is
recorded; a replay opens a copy of that in its scratch folder.

SQLite itself asks the system for the time, its seed, and the files that SQL names, through its VFS, a
table of C functions. We replace three of them while the program runs. So ``now`` in SQL and
``CURRENT_TIMESTAMP`` are reads of a clock, ``random()`` draws from a recorded seed, and a database that
is attached, or opened by `sqlite3.Connection` itself, is covered like others.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote

from playhead_instrumentation.libraries.ambient.stand_ins import getframe, reads_of_agent
from playhead_instrumentation.libraries.files.covered import Covered, absolute, asked
from playhead_instrumentation.libraries.files.readers import by_agent
from playhead_instrumentation.libraries.files.recorded import Files
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.builtins import genuine
from playhead_instrumentation.patching.patches import PATCHES, Unpatchable, required
from playhead_instrumentation.session.session import current

URI_AT: Final = 6
"""Index of ``uri`` among the arguments after the first."""

_library: Library | None = None
"""The SQLite library of this process; None if it cannot be reached."""


def patch(module: ModuleType) -> None:
    """Cover `sqlite3`."""
    original = required(module, "connect")
    if not isinstance(original, Covered):
        ours = genuine(original, Covered(original, _connecting))
        PATCHES.put(module, "connect", ours)
        home = sys.modules.get(original.__module__)
        if getattr(home, "connect", None) is original:  # `pickle` looks it up there
            PATCHES.put(home, "connect", ours)
        PATCHES.attempt("sqlite3 library", _reach)
        session = current()
        if session is not None:
            session.before_asking(_tell)
    if not hasattr(module.Connection, "serialize"):
        raise Unpatchable("its databases cannot be copied: it was built without serialize()")


def reaches_all() -> bool:
    """Return whether we choose every file that SQLite opens, even without a call of `connect`."""
    return _library is not None


def _tell() -> None:
    files = asked()
    if files is not None:
        files.tell_databases()


def _reach() -> None:
    global _library
    if _library is not None:
        return
    found = Library()
    found.cover()
    _library = found
    PATCHES.also(_let_go)


def _let_go() -> None:
    global _library
    if _library is not None:
        _library.uncover()
        _library = None


def _connecting(asked: Files, live: Any, *args: Any, **kwargs: Any) -> Any:
    return PATCHES.call(functools.partial(_connected, asked), live, *args, **kwargs)


def _connected(asked: Files, live: Any, database: Any, *args: Any, **kwargs: Any) -> Any:
    lane = lanes.current()
    heard = lane is not lanes.UNRECORDED and lane is not lanes.GC
    if _library is not None and heard:
        _library.seed()
    named = _file_of(database, bool(kwargs.get("uri", args[URI_AT] if len(args) > URI_AT else False)))
    path = None if named is None else absolute(asked, named[0])
    if named is None or path is None:
        return live(database, *args, **kwargs)
    place = asked.database(path)
    said = database if place is None else named[1](place)
    if _library is None:
        connection = live(said, *args, **kwargs)
    else:
        connection = _library.opening(place or path, lambda: live(said, *args, **kwargs))
    if heard:
        _heed(asked, path, connection)
    else:
        asked.databases.opened_by_tool(path)
    return connection


def _file_of(database: Any, is_uri: bool) -> tuple[str, Callable[[str], str]] | None:
    """Return the path that ``database`` means, and a function that puts another path in its place.

    None for a database that is not in a file.
    """
    name = os.fsdecode(database)
    if not (is_uri and name.startswith("file:")):
        return (name, str) if name and name != ":memory:" else None
    name, _, _ = name.removeprefix("file:").partition("#")
    path, mark, query = name.partition("?")
    if path.startswith("//"):
        path = path[2:][path[2:].find("/") :]
    asked = parse_qs(query)
    path = unquote(path)
    if not path or path == ":memory:" or "vfs" in asked or asked.get("mode") == ["memory"]:
        return None
    return path, lambda place: f"file:{quote(place)}{mark}{query}"


class _Ends:
    """A function registered with a connection. SQLite drops it when it has closed the connection."""

    def __init__(self, asked: Files, path: str) -> None:
        self._asked = asked
        self._path = path

    def __call__(self) -> None:
        """Never called."""

    def __del__(self) -> None:
        # The garbage collector closes a connection that was left open, at an arbitrary time.
        self._asked.database_closed(self._path, threading.get_ident() not in _collecting)


_collecting: Final[set[int]] = set()
"""Threads in which the garbage collector runs."""


def _collected(phase: str, info: Any) -> None:
    (_collecting.add if phase == "start" else _collecting.discard)(threading.get_ident())


def _heed(asked: Files, path: str, connection: Any) -> None:
    """Call `Files.database_closed` when the connection is closed."""
    import sqlite3

    if _collected not in gc.callbacks:
        gc.callbacks.append(_collected)
    asked.databases.opened(path)
    with contextlib.suppress(sqlite3.Error, TypeError):
        sqlite3.Connection.create_function(connection, "playhead_open", 0, _Ends(asked, path))


SEED_BYTES: Final = 256
"""Largest seed, in bytes; no version of SQLite takes more."""

CANTOPEN: Final = 14

_pointer = ctypes.c_void_p
_FullPathname = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, _pointer, ctypes.c_int, _pointer)
_Randomness = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, ctypes.c_int, _pointer)
_CurrentTime = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, ctypes.POINTER(ctypes.c_int64))


class _Vfs(ctypes.Structure):
    """``struct sqlite3_vfs``, up to the last field used here."""

    _fields_ = [
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        *((name, _pointer) for name in ("pNext", "zName", "pAppData", "xOpen", "xDelete", "xAccess")),
        ("xFullPathname", _pointer),
        *((name, _pointer) for name in ("xDlOpen", "xDlError", "xDlSym", "xDlClose")),
        ("xRandomness", _pointer),
        *((name, _pointer) for name in ("xSleep", "xCurrentTime", "xGetLastError")),
        ("xCurrentTimeInt64", _pointer),
    ]


class Library:
    """The SQLite library of this process. Raises `Unpatchable` if it cannot be reached."""

    def __init__(self) -> None:
        import _sqlite3

        try:
            c = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
            c.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
            c.sqlite3_libversion.restype = ctypes.c_char_p
            found = c.sqlite3_vfs_find(None)
            version = c.sqlite3_libversion().decode()
            self._randomness = c.sqlite3_randomness
        except (OSError, AttributeError):
            raise Unpatchable("the functions of its library cannot be reached") from None
        if not found or version != _sqlite3.sqlite_version or found.contents.iVersion < 2:
            raise Unpatchable("its library is another one than can be reached")
        self._vfs: Any = found.contents
        self._seed = b""
        self._opens = threading.local()
        self._before: dict[str, Any] = {}
        self._ours: list[Any] = []

    def cover(self) -> None:
        """Replace its functions."""
        full, random, now = (
            _FullPathname(self._vfs.xFullPathname),
            _Randomness(self._vfs.xRandomness),
            _CurrentTime(self._vfs.xCurrentTimeInt64),
        )
        ours = {
            "xFullPathname": _FullPathname(functools.partial(self._full_pathname, full)),
            "xRandomness": _Randomness(functools.partial(self._seeded, random)),
            "xCurrentTimeInt64": _CurrentTime(functools.partial(self._now, now)),
        }
        self._ours = list(ours.values())
        self._before = {name: getattr(self._vfs, name) for name in ours}
        for name, function in ours.items():
            setattr(self._vfs, name, ctypes.cast(function, _pointer).value)
        # Databases that are still open may be closed after the interpreter has ended.
        atexit.register(self.uncover)

    def uncover(self) -> None:
        """Restore its functions."""
        for name, before in self._before.items():
            setattr(self._vfs, name, before)

    def seed(self) -> None:
        """Seed it with a recorded seed, only once."""
        session = current()
        if not self._seed and session is not None:
            self._seed = session.driver.reads.read("entropy/sqlite3.seed", _drawn)
            self._randomness(0, None)

    def opening(self, path: str, do: Callable[[], Any]) -> Any:
        """Call ``do``, which opens the database at ``path``, which is already covered."""
        self._opens.known = path
        try:
            return do()
        finally:
            self._opens.known = ""

    def _full_pathname(self, real: Any, vfs: int, name: int, size: int, out: int) -> int:
        try:
            files = asked()
            path = None if files is None else absolute(files, os.fsdecode(ctypes.string_at(name)))
            known = path is None or path == getattr(self._opens, "known", "")
            if files is not None and path is not None and not known and _for_agent():
                place = files.database(path)
                # Its close is not reported, so it counts as open from here on.
                files.databases.opened(path)
                if place is not None:
                    return real(vfs, ctypes.c_char_p(os.fsencode(place)), size, out)
        except Exception:
            if not PATCHES.forgiving:
                return CANTOPEN
        return real(vfs, name, size, out)

    def _seeded(self, real: Any, vfs: int, size: int, out: int) -> int:
        if not self._seed or size > len(self._seed):
            return real(vfs, size, out)
        ctypes.memmove(out, self._seed, size)
        return size

    def _now(self, real: Any, vfs: int, out: Any) -> int:
        def live() -> int:
            real(vfs, out)
            return int(out[0])

        try:
            reads = reads_of_agent(1)
            if reads is not None:
                out[0] = reads.read("clock/sqlite3.now", live)
                return 0
        except Exception:
            pass
        return real(vfs, out)


def _drawn() -> bytes:
    return os.urandom(SEED_BYTES)


def _for_agent() -> bool:
    try:
        return by_agent(getframe(2))
    except ValueError:  # no Python frame above
        return False
