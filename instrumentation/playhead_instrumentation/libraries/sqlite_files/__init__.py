"""The SQLite databases that this process uses: their content, and whether it has changed.

A file that SQLite has open is never opened here by other means: closing it would drop the locks of the
whole process. It is read through a separate connection.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote

from playhead_core.databases import ChangedBlocks, blocks_changed
from playhead_core.facts import digest_of

BESIDE: Final = ("-wal", "-journal", "-shm")
"""Suffixes of the files that SQLite keeps next to a database."""

SMALL_BYTES: Final = 256 << 10
"""Largest database that is checked at each close of a connection, in bytes."""

LOOKED_BYTES: Final = 1 << 20
"""Largest database, in bytes, whose changes are recorded before each exchange."""

PATIENCE_S: Final = 0.1
"""How long to wait for a database that another process has locked, in seconds."""

SETTLED_NS: Final = 50_000_000
"""A file that changed within this time may change again without a change of its signature."""

_now_ns: Final = time.time_ns

Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]

Unkept: TypeAlias = Literal["large", "busy"]
"""Why it is not known what a database holds: it is over `LOOKED_BYTES`, or another connection has
locked it."""


@dataclass(frozen=True, slots=True)
class Found:
    """State of the files at the path where a database is about to be opened."""

    error: int = 0
    """Errno if no database can be read; else 0."""
    st_mode: int = 0
    mtime_ns: int = 0
    size: int = 0
    data: bytes | None = None
    """Content of the file, its log included; None if it is too large or cannot be read now."""


class _State:
    __slots__ = (
        "connections",
        "digest",
        "of_others",
        "recorded",
        "recorded_signature",
        "signature",
        "unrecorded",
        "was_open",
    )

    def __init__(self) -> None:
        self.connections = 0
        self.of_others = False
        self.was_open = False
        """Whether a connection to it was ever opened."""
        self.signature: Signature = ()
        """Signature of its files when a connection was last closed."""
        self.digest = b""
        """Digest of its content when it was last checked."""
        self.recorded = b""
        """What a reader of the tape knows that it holds; of one over `LOOKED_BYTES`: nothing."""
        self.recorded_signature: Signature | None = None
        """Signature of its files when it held that; None: it may have changed since."""
        self.unrecorded = ""
        """Why the tape does not say what it holds; said once."""


class Databases:
    """States of databases by absolute path. Safe from any thread."""

    def __init__(self, place: Callable[[str], str], limit_bytes: int) -> None:
        """``place``: gives the real place of a path."""
        self._place = place
        self._limit_bytes = limit_bytes
        self._states: dict[str, _State] = {}

    def paths(self) -> list[str]:
        """Paths of all databases that were opened."""
        return list(self._states)

    def files(self) -> list[str]:
        """Every file of which they may consist."""
        return [path + end for path in list(self._states) for end in ("", *BESIDE)]

    def look(self, path: str) -> Found | None:
        """The state before the database is opened; None if this process left it in that state."""
        state = self._states.get(path)
        if state is not None and (state.connections or state.signature == self._signature(path)):
            return None
        found = self._found(path)
        digest = b"" if found.data is None else digest_of(found.data)
        if state is not None and found.data is not None and digest == state.digest:
            return None
        self.holds(path, digest)
        state, signature = self._states[path], self._signature(path)
        state.recorded = _looked_at(found.data or b"")
        state.recorded_signature = signature if _is_settled(signature) else None
        return found

    def holds(self, path: str, digest: bytes) -> None:
        """Note the digest of the content of a database."""
        self._states.setdefault(path, _State()).digest = digest

    def news(self, path: str) -> ChangedBlocks | Unkept | None:
        """What has changed since the tape last held it, or why that is not known; None: nothing new.

        Does not wait: a database that another connection has locked is checked the next time.
        """
        state = self._states[path]
        if not state.was_open:
            return None
        signature = self._signature(path)
        if signature == state.recorded_signature or signature[0] is None:
            return None
        size = sum(one[1] for one in signature[:2] if one is not None)
        data = None
        if size <= LOOKED_BYTES:
            try:
                data = snapshot(self._place(path), 0.0)
            except OSError:
                return None
        if data is None:
            why: Unkept = "large" if size > LOOKED_BYTES else "busy"
            known, state.unrecorded = state.unrecorded, why
            return None if known == why else why
        state.recorded_signature = signature if _is_settled(signature) else None
        if data == state.recorded and not state.unrecorded:
            return None
        changes = blocks_changed(b"" if state.unrecorded else state.recorded, data)
        state.recorded, state.unrecorded = data, ""
        return changes

    def is_open(self, path: str) -> bool:
        """Return whether this process has a connection to it."""
        state = self._states.get(path)
        return state is not None and state.connections > 0

    def of_others(self, path: str) -> bool:
        """Return whether a marked tool had it to itself after the program."""
        return self._states[path].of_others

    def opened_by_tool(self, path: str) -> None:
        """A marked tool opens it: what it leaves there is changed by others."""
        state = self._states.get(path)
        if state is not None and not state.connections:
            state.of_others = True

    def opened(self, path: str) -> None:
        """Count one more connection."""
        state = self._states.setdefault(path, _State())
        state.connections += 1
        state.of_others = False
        state.was_open = True

    def closed(self, path: str) -> None:
        """Count one connection less."""
        state = self._states.get(path)
        if state is not None:
            state.connections = max(0, state.connections - 1)
            state.signature = self._signature(path)

    def changed(self, path: str, most_bytes: int = sys.maxsize) -> bytes | None:
        """Return the content as SQL, if it has changed since the last call; else None.

        ``most_bytes``: a larger database is not checked. The content of one over the limit is never
        given.
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


def _is_settled(signature: Signature) -> bool:
    return all(one is None or _now_ns() - one[0] > SETTLED_NS for one in signature)


def _looked_at(data: bytes) -> bytes:
    return data if len(data) <= LOOKED_BYTES else b""


def snapshot(place: str, patience_s: float = PATIENCE_S) -> bytes | None:
    """Return the content of a database file, its log included; None if SQLite cannot read it now.

    The bytes of a file that is not a database are given unchanged. Raises `OSError` if there is no
    file. ``patience_s``: how long a lock is waited for.
    """
    import sqlite3

    for mode in ("ro", "rw"):  # "ro" fails with an unused log or one that has to be rolled back
        connection = None
        try:
            name = f"file:{quote(place)}?mode={mode}"
            connection = sqlite3.connect(name, uri=True, timeout=patience_s, check_same_thread=False)
            return connection.serialize() if os.path.getsize(place) else b""
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
    """Return the content of a database as SQL; it depends on neither page layout nor SQLite version."""
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


def in_any_order(sql: bytes) -> bytes:
    """Return the lines of a dump sorted: equal for databases with the same rows in another order."""
    return b"\n".join(sorted(sql.split(b"\n")))


def lay(data: bytes, place: str, mode: int, mtime_ns: int) -> None:
    """Write a database to a place at which no connection has one open."""
    remove(place)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "wb") as file:
        file.write(data)
    os.chmod(place, stat.S_IMODE(mode))
    os.utime(place, ns=(mtime_ns, mtime_ns))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def take_over(data: bytes, place: str) -> None:
    """Replace the content of an open database by ``data``. Raises `OSError` if that fails."""
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
    """Return the database for use in memory: bytes 18 and 19 say that it has no write-ahead log."""
    return data[:18] + b"\x01\x01" + data[20:]


def remove(place: str) -> None:
    """Delete all files of a database."""
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
