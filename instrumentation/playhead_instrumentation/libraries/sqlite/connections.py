"""SQLite databases in files: `sqlite3.connect`, and so aiosqlite, SQLAlchemy and checkpoint savers.

SQLite itself runs in a recording and in a replay. The content of the file when it was opened is
recorded; a replay opens a copy of that in its scratch folder.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote

from playhead_instrumentation.libraries.files.covered import Covered, absolute, asked
from playhead_instrumentation.libraries.files.recorded import Files
from playhead_instrumentation.libraries.sqlite.vfs import Library
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
