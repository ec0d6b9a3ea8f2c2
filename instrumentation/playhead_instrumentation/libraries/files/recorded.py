"""The interface of the file boundary: it answers reads of files, and decides where writes go.

In a recording the real file system answers; its answers and changes are put on the tape.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from playhead_core.facts import Content
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.files.contents import (
    HEAD_BYTES,
    WRITERS_BYTES,
    Contents,
    bytes_of,
    digest_of_file,
)
from playhead_instrumentation.libraries.files.facts import FileFacts
from playhead_instrumentation.libraries.files.workspace import Look, Workspace
from playhead_instrumentation.libraries.sqlite_files import SMALL_BYTES, Databases, Found
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.recorder.reads import encode_value
from playhead_semconv import attributes as a

log = Log(__name__)

Real = Callable[[str | None], Any]
"""Does the operation in the file system: on the program's own path (None), or on the given one."""

Written = tuple[str, Content | None, dict[str, Any]]
"""An effect: ``write`` or ``append``, the content, and the attributes."""

SETTLED_NS: Final = 50_000_000
"""A file that changed within this time may change again without a change of its signature."""

DATABASE: Final = "database"
"""The question on the tape for a connection to a SQLite database."""

_now_ns: Final = time.time_ns


class Handle:
    """A file that is open for writing. ``path``: as the program knows it."""

    __slots__ = ("before", "fd", "how", "open", "path", "start")

    def __init__(self, path: str, fd: int, how: str, start: int = 0, before: bytes = b"") -> None:
        self.path = path
        self.fd = fd
        self.how = how
        """``write``, ``update`` or ``append``."""
        self.start = start
        """Offset at which appended bytes begin."""
        self.before = before
        """Digest of its content before an ``update``."""
        self.open = [None]


class Files:
    """The file system as the program sees it, put on the tape. Safe from any thread.

    ``op`` is the operation (``stat``, ``listdir``, …), ``path`` an absolute path.
    """

    scratch = ""
    """The folder to which a replay redirects writes; empty: writes are not redirected."""

    def __init__(self, driver: Driver, workspace: Workspace) -> None:
        self.workspace: Final = workspace
        self._facts = FileFacts(driver, workspace.names)
        self._limit_bytes = workspace.limit_bytes
        self._handles: dict[int, Handle] = {}
        self._folders: dict[int, str] = {}
        self.ended = False
        """Whether the session is over: nothing is answered or recorded any more."""
        self._contents: Contents | None = None
        self._renew()

    def _renew(self) -> None:
        """Start with nothing known of any file."""
        if self._contents is not None:
            self._contents.left_behind()
        self._contents = Contents(self._limit_bytes, self._facts.holds)
        self._known: dict[str, tuple[tuple[int, int, int], Content]] = {}
        self.databases = Databases(self.workspace.place, self._limit_bytes)
        self.workspace.is_database = self.databases.is_open

    @property
    def quiet(self) -> bool:
        """Whether the current operation is not the program's."""
        lane = lanes.current()
        return lane is lanes.UNRECORDED or lane is lanes.GC

    @property
    def _unheard(self) -> bool:
        """Whether the current operation does not go on the tape."""
        return self.ended or self.quiet

    def cwd(self) -> str:
        """Return the working folder of the program."""
        return os.getcwd()

    def moved(self, path: str) -> None:
        """The program has changed to this folder."""

    def folder_of(self, fd: int) -> str | None:
        """Return the path of an open folder or file; None if it is not known."""
        handle = self._handles.get(fd)
        return self._folders.get(fd) if handle is None else handle.path

    def touched(self, path: str) -> bool:
        """Return whether the run itself has changed this path."""
        return False

    def query(self, op: str, path: str, real: Real) -> Any:
        """Answer a query of the file system: a plain value. Raises `OSError`."""
        try:
            value = real(None)
        except OSError as problem:
            if problem.errno is not None and not self.quiet:
                self._failed(op, path, problem.errno)
            raise
        if not self.quiet:
            self._facts.read(self._facts.question(op, path), encode_value(value), {})
        return value

    def _failed(self, op: str, path: str, number: int, to: str = "") -> None:
        """The operation has failed with this errno."""
        self._facts.read(self._facts.question(op, path, to), None, {a.PLAYHEAD_FILE_ERROR: number})

    def change(self, op: str, path: str, real: Real, to: str = "") -> None:
        """Make a change that is complete at once: creation, renaming, deletion.

        ``to``: the second path or another detail. Raises `OSError`.
        """
        if op == "truncate":
            self._settle_reads(path)
        try:
            real(None)
        except OSError as problem:
            if problem.errno is not None and not self.quiet:
                self._failed(op, path, problem.errno, to)
            raise
        self._known.pop(path, None)
        if op in ("mkdir", "rename", "symlink", "link"):
            self.workspace.wrote(to if op == "rename" else path)
        self.workspace.touched(path)
        if not self.quiet:
            self._facts.did(self._facts.question(op, path, to), {})

    def open(self, path: str, flags: int, mode: int, real: Callable[[str | None, int], int]) -> int:
        """Open a file; gives a descriptor as ``os.open`` does."""
        how = how_of(flags)
        self._after_fork()
        if self.quiet:
            return real(None, flags)
        there = os.path.lexists(path) if how != "open" else True
        if how != "open":
            self._settle_reads(path)
        try:
            fd = real(None, flags)
        except OSError as problem:
            if problem.errno is not None:
                self._failed(opening(how), path, problem.errno)
            raise
        try:
            self._opened(path, fd, how, there)
        except Exception:
            log.debug("playhead could not record a file", exc_info=True)
        return fd

    def _opened(self, path: str, fd: int, how: str, there: bool) -> None:
        self._handles.pop(fd, None)
        self._folders.pop(fd, None)
        found = os.fstat(fd)
        values: dict[str, Any] = {a.PLAYHEAD_FILE_MODE: found.st_mode}
        if stat.S_ISDIR(found.st_mode):
            self._folders[fd] = path
        if not stat.S_ISREG(found.st_mode):
            self._facts.read(self._facts.question(opening(how), path), None, values)
            return
        values[a.PLAYHEAD_FILE_SIZE] = found.st_size
        values[a.PLAYHEAD_FILE_MTIME_NS] = found.st_mtime_ns
        content = None
        if how in ("open", "update"):
            content = self._held_by(path, fd, found, values, how)
        if how != "open":
            if there and how != "write":
                values[a.PLAYHEAD_FILE_OFFSET] = found.st_size
            before = b"" if content is None else content.digest
            self._handles[fd] = Handle(path, fd, how if there else "write", found.st_size, before)
            self.workspace.wrote(path)
        self._facts.read(self._facts.question(opening(how), path), content, values)

    def look(self) -> Look:
        """Return the state of the workspace before a child starts."""
        self.workspace.touched(*(handle.path for handle in list(self._handles.values())))
        self.workspace.touched(*self.databases.files())
        self._settle_reads()
        return self.workspace.before()

    def closing(self, fd: int) -> None:
        """Put on the tape what was written through ``fd``, which is about to be closed. Never raises."""
        self._after_fork()
        self._folders.pop(fd, None)
        handle = self._handles.pop(fd, None)
        if handle is not None:
            self.workspace.touched(handle.path)
            self.settle(handle)

    def settle(self, handle: Handle) -> None:
        """Put on the tape what was written through ``handle``, only once. Never raises."""
        try:
            handle.open.pop()
        except IndexError:
            return
        if self.quiet:
            return
        try:
            self._written(handle)
        except Exception:
            log.debug("playhead could not record what was written", exc_info=True)

    def at_end(self) -> None:
        """At the end of the process, or at a fork: settle everything that is still open."""
        for fd in list(self._handles):
            self.closing(fd)
        for path in self.databases.paths():
            if not self.databases.of_others(path):
                self._settle_database(path)
        if self._contents is not None:
            self._contents.close()
        self.ended = True

    def database(self, path: str) -> str | None:
        """Where SQLite is to open a database; None: at its own path. Called before each connection."""
        self._after_fork()
        if self._unheard:
            return None
        try:
            found = self.databases.look(path)
            self.workspace.wrote(path)
            values: dict[str, Any] = {} if found is None else looks_of(found)
            content = None
            if found is not None and found.data is not None and not found.error:
                content = self._facts.scrubbed(found.data, values)
            self._facts.read(self._facts.question(DATABASE, path), content, values)
        except Exception:
            log.debug("playhead could not record a database", exc_info=True)
        return None

    def tell_databases(self) -> None:
        """Put on the tape what has changed in databases, before the program asks. Never raises."""
        if self._unheard or self._facts.forked:
            return
        for path in self.databases.paths():
            try:
                news = self.databases.news(path)
                if news is not None:
                    self._facts.database(path, news)
            except Exception:
                log.debug("playhead could not record what has changed in a database", exc_info=True)

    def database_closed(self, path: str, by_program: bool) -> None:
        """A connection was closed, by the program or by the garbage collector. Never raises."""
        try:
            self._after_fork()
            self.databases.closed(path)
            if by_program and not self._unheard:
                self._settle_database(path, SMALL_BYTES)
        except Exception:
            log.debug("playhead could not record what a database holds", exc_info=True)

    def _settle_database(self, path: str, most_bytes: int = sys.maxsize) -> None:
        """Put the database on the tape if it has changed."""
        try:
            said = self.databases.changed(path, most_bytes)
            if said is not None:
                self._facts.did(self._facts.question("write", path), self._facts.digests(said))
        except Exception:
            log.debug("playhead could not record what a database holds", exc_info=True)

    def _after_fork(self) -> None:
        if self._facts.forked:
            self._facts.renew()
            self._handles.clear()
            self._renew()

    def _written(self, handle: Handle) -> Written | None:
        """Put the effect on the tape and return it; None if nothing was written."""
        found = os.fstat(handle.fd)
        values: dict[str, Any] = {a.PLAYHEAD_FILE_SIZE: found.st_size}
        self._known.pop(handle.path, None)
        if handle.how == "append" and found.st_size >= handle.start:
            data = bytes_of(handle.fd, handle.path, handle.start, self._limit_bytes)
            values[a.PLAYHEAD_FILE_OFFSET] = handle.start
            content = self._facts.kept(data, values)
            self._facts.did(self._facts.question("append", handle.path), values, content)
            return "append", content, values
        content = self._content(handle.path, handle.fd, found, values)
        if handle.how == "update" and content is not None and content.digest == handle.before:
            return None
        self._facts.did(self._facts.question("write", handle.path), values, content)
        return "write", content, values

    def _settle_reads(self, path: str | None = None) -> None:
        """Read the waiting files at ``path`` (None: all), because they are about to change."""
        if self._contents is not None and not self._facts.forked:
            self._contents.settle(path)

    def _held_by(
        self, path: str, fd: int, found: os.stat_result, values: dict[str, Any], how: str
    ) -> Content | None:
        """Return the content of a file that the program opens.

        For a large file: None, and ``values`` gets the number of its report, or why it is not kept.
        """
        if not self._facts.content:
            return Content(b"", found.st_size)
        if found.st_size <= HEAD_BYTES:
            return self._content(path, fd, found, values)
        data = None
        if found.st_size <= WRITERS_BYTES and self._changes(path, how):
            data = bytes_of(fd, path, 0, WRITERS_BYTES)
        assert self._contents is not None
        number = self._contents.later(path, lanes.current().hash, found, fd, data)
        if isinstance(number, int):
            values[a.PLAYHEAD_FILE_CONTENT] = number
            if _now_ns() - found.st_mtime_ns > SETTLED_NS:
                self._contents.remember(path, found, number)
        else:
            values[a.PLAYHEAD_FILE_UNKEPT] = number
        return None

    def _changes(self, path: str, how: str) -> bool:
        """Return whether the program can change a file without a call to us before."""
        return how == "update" or any(handle.path == path for handle in list(self._handles.values()))

    def _content(
        self, path: str, fd: int, found: os.stat_result, values: dict[str, Any]
    ) -> Content | None:
        """Return the content of an open file. An unchanged file is not read again."""
        signature = found.st_mtime_ns, found.st_size, found.st_ino
        known = self._known.get(path)
        if known is not None and known[0] == signature:
            return known[1]
        if found.st_size > self._limit_bytes:
            digest = digest_of_file(fd, path)
            values[a.PLAYHEAD_FILE_DIGEST] = digest.hex()
            return None
        content = self._facts.kept(bytes_of(fd, path, 0, self._limit_bytes), values)
        if content is not None and _now_ns() - found.st_mtime_ns > SETTLED_NS:
            self._known[path] = signature, Content(content.digest, content.size)
        return content


def looks_of(found: Found) -> dict[str, Any]:
    """Return attributes for the state of the files at a path before a database is opened there."""
    if found.error:
        return {a.PLAYHEAD_FILE_ERROR: found.error}
    return {
        a.PLAYHEAD_FILE_MODE: found.st_mode,
        a.PLAYHEAD_FILE_SIZE: found.size,
        a.PLAYHEAD_FILE_MTIME_NS: found.mtime_ns,
    }


def opening(how: str) -> str:
    """Return the question on the tape for opening a file."""
    return how if how == "open" else f"open-{how}"


def how_of(flags: int) -> str:
    """The purpose of opening with ``flags``: ``open`` (to read), ``write``, ``append`` or ``update``."""
    access = flags & os.O_ACCMODE
    if access == os.O_RDONLY and not flags & (os.O_TRUNC | os.O_CREAT):
        return "open"
    if flags & os.O_TRUNC or flags & os.O_EXCL:
        return "write"
    if access == os.O_WRONLY and flags & os.O_APPEND:
        return "append"
    return "update"
