"""The interface of the file boundary: it answers reads of files, and decides where writes go.

In a recording the real file system answers; its answers and changes are put on the tape.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Generator
from typing import Any, Final, Protocol

import blake3
import msgspec

from playhead_instrumentation.driver.bodies import Bodies
from playhead_instrumentation.host.files.contents import (
    CHUNK_BYTES,
    DIGEST,
    HEAD_BYTES,
    WRITERS_BYTES,
    Contents,
    Job,
    again,
)
from playhead_instrumentation.host.files.workspace import LIMIT_BYTES, Look, Workspace
from playhead_instrumentation.host.sqlite.databases import SMALL_BYTES, Databases, Found
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.runtime import lanes
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.facts import Content, Fact, Fidelity, digest_of
from playhead_semconv.tape.protocols import Sink

log = logging.getLogger(__name__)

Real = Callable[[str | None], Any]
"""Does the operation in the file system: on the program's own path (None), or on the given one."""

Written = tuple[str, Content | None, dict[str, Any]]
"""An effect: ``write`` or ``append``, the content, and the attributes."""

SETTLED_NS: Final = 50_000_000
"""A file that changed within this time may change again without a change of its signature."""

CONTENT: Final = "file/content "
"""Prefix of the kind of a read that has the content of a large file."""

DATABASE: Final = "database"
"""The question on the tape for a connection to a SQLite database."""

_now_ns: Final = time.time_ns
_encode: Final = msgspec.msgpack.Encoder().encode


class Effects(Protocol):
    """The signature of `Driver.effect`."""

    def __call__(
        self,
        kind: str,
        target: str = "",
        body: Content | None = None,
        *,
        fidelity: Fidelity | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> int:
        """See `Driver.effect`."""
        ...


class Handle:
    """A file that is open for writing. ``path``: as the program knows it."""

    __slots__ = ("before", "fd", "how", "open", "path", "start")

    def __init__(self, path: str, fd: int, how: str, start: int = 0, before: bytes = b"") -> None:
        self.path = path
        self.fd = fd
        self.how = how
        """``write``, ``update`` or ``append``."""
        self.start = start
        """Where appended bytes begin."""
        self.before = before
        """Digest of its content before an ``update``."""
        self.open = [None]


class Files:
    """The file system as the program sees it, put on the tape. Safe from any thread.

    ``op`` is the operation (``stat``, ``listdir``, …), ``path`` an absolute path.
    """

    scratch = ""
    """The folder to which a replay redirects writes; empty: writes are not redirected."""

    def __init__(
        self,
        sink: Sink,
        redactor: Redactor,
        declare: Callable[[lanes.Lane], None],
        effect: Effects,
        workspace: Workspace,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        self.workspace: Final = workspace
        self._sink = sink
        self._redactor = redactor
        self._declare = declare
        self._effect = effect
        self._limit_bytes = limit_bytes
        self._handles: dict[int, Handle] = {}
        self._folders: dict[int, str] = {}
        self.ended = False
        """Whether the session is over: nothing is answered or recorded any more."""
        self._of = b""
        self._contents: Contents | None = None
        self._renew()

    def _renew(self) -> None:
        """Start anew after a fork: what the parent wrote is not on this instance's tape."""
        self._of = self._sink.instance
        self._bodies = Bodies(self._redactor.body)
        self._large = Bodies(self._redactor.body)
        if self._contents is not None:
            self._contents.left_behind()
        self._contents = Contents(self._limit_bytes, self._holds)
        self._held: set[bytes] = set()
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
        """The working folder of the program."""
        return os.getcwd()

    def moved(self, path: str) -> None:
        """The program has changed to this folder."""

    def folder_of(self, fd: int) -> str | None:
        """The path of an open folder or file; None where it is not known."""
        handle = self._handles.get(fd)
        return self._folders.get(fd) if handle is None else handle.path

    def touched(self, path: str) -> bool:
        """Whether the run itself has changed this path."""
        return False

    def query(self, op: str, path: str, real: Real) -> Any:
        """Answer a query of the file system: a plain value. Raises `OSError`."""
        try:
            value = real(None)
        except OSError as problem:
            if problem.errno is not None and not self.quiet:
                self._read(op, path, None, {a.PLAYHEAD_FILE_ERROR: problem.errno})
            raise
        if not self.quiet:
            self._read(op, path, _encode(value), {})
        return value

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
                self._read(op, path, None, {a.PLAYHEAD_FILE_ERROR: problem.errno}, to)
            raise
        self._known.pop(path, None)
        if op in ("mkdir", "rename", "symlink", "link"):
            self.workspace.wrote(to if op == "rename" else path)
        self.workspace.touched(path)
        if not self.quiet:
            self._did(op, path, {}, None, to)

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
                self._read(opening(how), path, None, {a.PLAYHEAD_FILE_ERROR: problem.errno})
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
            self._read(opening(how), path, None, values)
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
        self._read(opening(how), path, content, values)

    def look(self) -> Look:
        """The state of the workspace before a child starts."""
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
                content = self._kept_database(found.data, values)
            self._read(DATABASE, path, content, values)
        except Exception:
            log.debug("playhead could not record a database", exc_info=True)
        return None

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
                digest = digest_of(self._redactor.body(said)[0])
                self._did("write", path, {a.PLAYHEAD_FILE_DIGEST: digest.hex()}, None)
        except Exception:
            log.debug("playhead could not record what a database holds", exc_info=True)

    def _kept_database(self, data: bytes, values: dict[str, Any]) -> Content:
        """A database for the tape: stars replace credentials, so that its pages stay valid."""
        if not self._redactor.content:
            return Content(b"", len(data))
        scrub = self._redactor.response("", "")
        kept = scrub.chunk(data)
        if scrub.count:
            values[a.PLAYHEAD_REDACTED_COUNT] = scrub.count
        return self._once(Content(digest_of(kept), len(kept), kept))

    def _after_fork(self) -> None:
        if self._of != self._sink.instance:
            self._handles.clear()
            self._renew()

    def _written(self, handle: Handle) -> Written | None:
        """Put the effect on the tape and return it; None where nothing was written."""
        found = os.fstat(handle.fd)
        values: dict[str, Any] = {a.PLAYHEAD_FILE_SIZE: found.st_size}
        self._known.pop(handle.path, None)
        if handle.how == "append" and found.st_size >= handle.start:
            data = _bytes_of(handle.fd, handle.path, handle.start, self._limit_bytes)
            values[a.PLAYHEAD_FILE_OFFSET] = handle.start
            content = self._kept(data, values)
            self._did("append", handle.path, values, content)
            return "append", content, values
        content = self._content(handle.path, handle.fd, found, values)
        if handle.how == "update" and content is not None and content.digest == handle.before:
            return None
        self._did("write", handle.path, values, content)
        return "write", content, values

    def _settle_reads(self, path: str | None = None) -> None:
        """Read the waiting files at ``path`` (None: all), because they are about to change."""
        if self._contents is not None and self._of == self._sink.instance:
            self._contents.settle(path)

    def _held_by(
        self, path: str, fd: int, found: os.stat_result, values: dict[str, Any], how: str
    ) -> Content | None:
        """The content of a file that the program opens.

        For a large file: None, and ``values`` gets the number of its report, or why it is not kept.
        """
        if not self._redactor.content:
            return Content(b"", found.st_size)
        if found.st_size <= HEAD_BYTES:
            return self._content(path, fd, found, values)
        data = None
        if found.st_size <= WRITERS_BYTES and self._changes(path, how):
            data = _bytes_of(fd, path, 0, WRITERS_BYTES)
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
        """Whether the program can change a file without a call to us before."""
        return how == "update" or any(handle.path == path for handle in list(self._handles.values()))

    def _holds(self, job: Job, what: bytes | str) -> None:
        """Put on the tape the content of a large file, or why it is not kept. Never raises."""
        try:
            values: dict[str, Any] = {
                a.PLAYHEAD_READ_KIND: f"{CONTENT}{self._target(job.path, '')}",
                a.PLAYHEAD_FILE_CONTENT: job.number,
                a.PLAYHEAD_FILE_SIZE: job.size,
            }
            content: Content | None = None
            if isinstance(what, bytes):
                _, content, count = self._large.written(what)
                if count:
                    values[a.PLAYHEAD_REDACTED_COUNT] = count
            elif what.startswith(DIGEST):
                values[a.PLAYHEAD_FILE_DIGEST] = what[len(DIGEST) :]
            else:
                values[a.PLAYHEAD_FILE_UNKEPT] = what
            there = content is not None and content.digest in self._held
            body = Content(content.digest, content.size) if there and content else content
            self._sink.append(Fact(_now_ns(), job.lane, e.PLAYHEAD_READ, attributes=values, body=body))
            if content is not None:
                self._held.add(content.digest)  # its bytes are on the tape now
        except Exception:
            log.debug("playhead could not record what a file holds", exc_info=True)

    def _content(
        self, path: str, fd: int, found: os.stat_result, values: dict[str, Any]
    ) -> Content | None:
        """The content of an open file. An unchanged file is not read again."""
        signature = found.st_mtime_ns, found.st_size, found.st_ino
        known = self._known.get(path)
        if known is not None and known[0] == signature:
            return known[1]
        if found.st_size > self._limit_bytes:
            digest = _digest_of_file(fd, path)
            values[a.PLAYHEAD_FILE_DIGEST] = digest.hex()
            return None
        content = self._kept(_bytes_of(fd, path, 0, self._limit_bytes), values)
        if content is not None and _now_ns() - found.st_mtime_ns > SETTLED_NS:
            self._known[path] = signature, Content(content.digest, content.size)
        return content

    def _kept(self, data: bytes | None, values: dict[str, Any]) -> Content | None:
        """``data`` for the tape; each content is put there once."""
        if data is None:
            return None
        if not self._redactor.content:
            return Content(b"", len(data))
        _, content, count = self._bodies.written(data)
        if count:
            values[a.PLAYHEAD_REDACTED_COUNT] = count
        return self._once(content)

    def _once(self, content: Content) -> Content:
        if content.digest in self._held:
            return Content(content.digest, content.size)
        self._held.add(content.digest)
        return content

    def _read(
        self,
        op: str,
        path: str,
        value: bytes | Content | None,
        values: dict[str, Any],
        to: str = "",
        fidelity: Fidelity | None = None,
    ) -> None:
        try:
            kind = f"file/{op} {self._target(path, to)}"
            body = Content(b"", len(value), value) if isinstance(value, bytes) else value
            if fidelity is not None:
                values = {**values, a.PLAYHEAD_FIDELITY: fidelity}
            lane = lanes.current()
            if lane.declared_on != self._sink.instance:
                self._declare(lane)
            attributes = {a.PLAYHEAD_READ_KIND: kind, **values}
            self._sink.append(
                Fact(_now_ns(), lane.hash, e.PLAYHEAD_READ, attributes=attributes, body=body)
            )
        except Exception:
            log.debug("playhead could not record a read of a file", exc_info=True)

    def _did(
        self,
        op: str,
        path: str,
        values: dict[str, Any],
        body: Content | None,
        to: str = "",
        fidelity: Fidelity | None = None,
    ) -> None:
        try:
            target = self._target(path, to)
            self._effect(f"file.{op}", target, body, fidelity=fidelity, attributes=values)
        except Exception:
            log.debug("playhead could not record an effect on a file", exc_info=True)

    def _target(self, path: str, to: str) -> str:
        short = self._redactor.text(self.workspace.names.short(path))
        return f"{short} {self._redactor.text(self.workspace.names.short(to))}" if to else short


def looks_of(found: Found) -> dict[str, Any]:
    """The attributes that describe what is found where a database is to be opened."""
    if found.error:
        return {a.PLAYHEAD_FILE_ERROR: found.error}
    return {
        a.PLAYHEAD_FILE_MODE: found.st_mode,
        a.PLAYHEAD_FILE_SIZE: found.size,
        a.PLAYHEAD_FILE_MTIME_NS: found.mtime_ns,
    }


def opening(how: str) -> str:
    """The question on the tape for opening a file."""
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


def _bytes_of(fd: int, path: str, start: int, limit_bytes: int) -> bytes | None:
    """The content of an open file from ``start`` on; None where it is longer than the limit.

    The position of the file does not change.
    """
    with _readable(fd, path) as reading:
        pieces: list[bytes] = []
        at = start
        while at - start <= limit_bytes:
            try:
                piece = os.pread(reading, CHUNK_BYTES, at)
            except BlockingIOError:
                break
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            at += len(piece)
    return None


def _digest_of_file(fd: int, path: str) -> bytes:
    hasher = blake3.blake3()
    with _readable(fd, path) as reading:
        at = 0
        while piece := os.pread(reading, CHUNK_BYTES, at):
            hasher.update(piece)
            at += len(piece)
    return hasher.digest()


@contextlib.contextmanager
def _readable(fd: int, path: str) -> Generator[int]:
    """A readable descriptor of the same file, even where ``fd`` is open for writing only."""
    try:
        os.pread(fd, 1, 0)
    except OSError:
        pass
    else:
        yield fd
        return
    reading = again(fd, path)
    try:
        yield reading
    finally:
        _os_close(reading)


_os_close: Final = os.close
