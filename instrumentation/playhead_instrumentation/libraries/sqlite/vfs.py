"""Requests of SQLite itself to the system: the time, its seed, and the files that SQL names.

SQLite makes them through its VFS, a table of C functions. We replace three of them while the program
runs. So ``now`` in SQL and ``CURRENT_TIMESTAMP`` are reads of a clock, ``random()`` draws from a
recorded seed, and a database that is attached, or opened by `sqlite3.Connection` itself, is covered
like others.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Final

from playhead_instrumentation.libraries.files.covered import absolute, asked
from playhead_instrumentation.libraries.files.readers import by_agent
from playhead_instrumentation.patching.patches import PATCHES, Unpatchable
from playhead_instrumentation.session.readers import getframe, reads_of_agent
from playhead_instrumentation.session.session import current

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
