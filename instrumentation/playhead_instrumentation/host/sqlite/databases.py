"""The databases of SQLite that this process works on: what they hold, and whether that has changed.

A file that SQLite has open is never opened here by other means: closing it would drop the locks of the
whole process. It is read through a connection of its own.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from playhead_semconv.facts import digest_of

BESIDE: Final = ("-wal", "-journal", "-shm")
"""What SQLite lays beside a database, by the end of the name."""

SMALL_BYTES: Final = 256 << 10
"""A database that is not larger is looked at whenever a connection to it is closed."""

PATIENCE_S: Final = 0.1
"""How long another process may keep the database locked."""

Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What lies where a database is to be opened."""

    error: int = 0
    """An errno where there is none that can be read."""
    mode: int = 0
    mtime_ns: int = 0
    size: int = 0
    data: bytes | None = None
    """What the file holds, its log included; None of one that is too large or cannot be read now."""


class _State:
    __slots__ = ("connections", "digest", "signature")

    def __init__(self) -> None:
        self.connections = 0
        self.signature: Signature = ()
        """How its files looked when a connection was last closed."""
        self.digest = b""
        """Of what it held when it was last looked at."""


class Databases:
    """By absolute path. Safe from any thread."""

    def __init__(self, place: Callable[[str], str], limit_bytes: int) -> None:
        """``place``: where a path really lies."""
        self._place = place
        self._limit_bytes = limit_bytes
        self._states: dict[str, _State] = {}

    def paths(self) -> list[str]:
        """All that were opened."""
        return list(self._states)

    def files(self) -> list[str]:
        """Every file that they may consist of."""
        return [path + end for path in list(self._states) for end in ("", *BESIDE)]

    def look(self, path: str) -> Found | None:
        """What lies there, before it is opened; None where it is as this process has left it."""
        state = self._states.get(path)
        if state is not None and (state.connections or state.signature == self._signature(path)):
            return None
        found = self._found(path)
        digest = b"" if found.data is None else digest_of(found.data)
        if state is not None and found.data is not None and digest == state.digest:
            return None
        self.holds(path, digest)
        return found

    def holds(self, path: str, digest: bytes) -> None:
        """It holds what has this digest."""
        self._states.setdefault(path, _State()).digest = digest

    def is_open(self, path: str) -> bool:
        """Whether this process has a connection to it."""
        state = self._states.get(path)
        return state is not None and state.connections > 0

    def opened(self, path: str) -> None:
        """There is one more connection."""
        self._states.setdefault(path, _State()).connections += 1

    def closed(self, path: str) -> None:
        """There is one connection less."""
        state = self._states.get(path)
        if state is not None:
            state.connections = max(0, state.connections - 1)
            state.signature = self._signature(path)

    def changed(self, path: str, most_bytes: int = sys.maxsize) -> bytes | None:
        """What it says now, as SQL, where it has changed since this was last asked.

        ``most_bytes``: a larger one is not looked at. Of one over the limit it is never said.
        """
        state = self._states[path]
        found = self._found(path, most_bytes)
        if found.data is None or found.error:
            return None
        data = found.data
        digest = digest_of(data)
        if digest == state.digest:
            return None
        state.digest = digest
        return dump(data)

    def _found(self, path: str, most_bytes: int = sys.maxsize) -> Found:
        place = self._place(path)
        try:
            seen = os.stat(place)
            if not stat.S_ISREG(seen.st_mode):
                return Found(errno.EISDIR)
            log = _looks(f"{place}-wal")
            size = seen.st_size + (0 if log is None else log[1])
            data = snapshot(place) if size <= min(most_bytes, self._limit_bytes) else None
        except FileNotFoundError:
            there = os.path.isdir(os.path.dirname(place))
            return Found(errno.ENOENT if there else errno.ENOTDIR, data=b"")
        except OSError as problem:
            return Found(problem.errno or errno.EACCES)
        return Found(0, seen.st_mode, seen.st_mtime_ns, size, data)

    def _signature(self, path: str) -> Signature:
        place = self._place(path)
        return tuple(_looks(one) for one in (place, f"{place}-wal", f"{place}-journal"))


def snapshot(place: str) -> bytes | None:
    """What a database file holds, its log included; None where SQLite cannot read it now.

    What is no database is given as it is. `OSError` where it is not there.
    """
    import sqlite3

    for mode in ("ro", "rw"):  # with a log that nobody uses, or one to be rolled back, "ro" does not do
        connection = None
        try:
            name = f"file:{quote(place)}?mode={mode}"
            connection = sqlite3.connect(name, uri=True, timeout=PATIENCE_S, check_same_thread=False)
            return connection.serialize()
        except (sqlite3.OperationalError, AttributeError):
            continue
        except sqlite3.DatabaseError:
            break
        finally:
            if connection is not None:
                connection.close()
    else:
        return None
    with open(place, "rb") as file:
        return file.read()


def dump(data: bytes) -> bytes:
    """What a database says, as SQL: the same for every layout of its pages and version of SQLite."""
    import sqlite3

    if not data:
        return b""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        connection.deserialize(_without_log(data))
        connection.text_factory = _text
        lines: Any = connection.iterdump()
        return "\n".join(lines).encode("utf-8", "surrogateescape")
    except (sqlite3.Error, AttributeError):
        return data
    finally:
        connection.close()


def lay(data: bytes, place: str, mode: int, mtime_ns: int) -> None:
    """Put a database where no connection has it open."""
    remove(place)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "wb") as file:
        file.write(data)
    os.chmod(place, stat.S_IMODE(mode))
    os.utime(place, ns=(mtime_ns, mtime_ns))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def take_over(data: bytes, place: str) -> None:
    """Make a database that is open hold ``data``. `OSError` where that cannot be done."""
    import sqlite3

    source, target = sqlite3.connect(":memory:"), sqlite3.connect(place, timeout=PATIENCE_S)
    try:
        source.deserialize(_without_log(data))
        source.backup(target)
    except (sqlite3.Error, AttributeError) as problem:
        raise OSError(errno.EBUSY, str(problem), place) from problem
    finally:
        target.close()
        source.close()


def _without_log(data: bytes) -> bytes:
    """The same as one that can be in memory: its bytes 18 and 19 tell of no log."""
    return data[:18] + b"\x01\x01" + data[20:]


def remove(place: str) -> None:
    """Leave nothing of a database."""
    for one in (place, *(place + end for end in BESIDE)):
        try:
            os.unlink(one)
        except OSError:
            continue


def _looks(place: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(place)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
