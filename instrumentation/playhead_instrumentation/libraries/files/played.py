"""The file system of a replay: a tape answers, and what is written goes to a scratch folder.

A question of the program gets the recorded answer, found by lane, question and path. Paths that this run
has changed in another way than the recorded run are answered from the scratch folder. Questions that the
tape does not know are refused: the real disk is not asked.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable
from typing import Any, Final

from playhead_core.facts import Content, Fact, Fidelity, digest_of
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_instrumentation.libraries import sqlite_files
from playhead_instrumentation.libraries.files.recorded import (
    DATABASE,
    Files,
    Handle,
    Real,
    Written,
    how_of,
    opening,
)
from playhead_instrumentation.libraries.files.recorded_contents import FileBlocked, RecordedContents
from playhead_instrumentation.libraries.files.scratch import OWN_MODE, Scratch
from playhead_instrumentation.libraries.files.workspace import Workspace
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.recorder.reads import decode_value, encode_value
from playhead_instrumentation.recorder.unused import UnusedResponses
from playhead_semconv import attributes as a
from playhead_semconv import events as e

_os_open: Final = os.open
_os_close: Final = os.close
_getcwd: Final = os.getcwd


class PlayedFiles(Files):
    """Answers from a tape. Safe from any thread."""

    def __init__(
        self, driver: Driver, workspace: Workspace, tape: IndexedTape, scratch: str = ""
    ) -> None:
        """``scratch``: an empty folder for written files; by default a new one."""
        self._scratch = Scratch(scratch)
        self.scratch = self._scratch.folder
        self._tape = tape
        self._driver = driver
        self._instance = driver.sink.instance
        self._lock = threading.Lock()
        self._answers: UnusedResponses[str] = UnusedResponses()
        """Sequence numbers of facts, by question."""
        self._last: dict[str, int] = {}
        self._other: set[str] = set()
        """Paths that this run has written or changed in another way than the recorded run."""
        self._hollow: set[str] = set()
        """Files of whose beginning only the length is known."""
        self._cwd = ""
        self._over = False
        self._recorded = RecordedContents(
            tape, self._scratch.store, lambda path, cause: self._blocked("open", path, cause=cause)
        )
        for fact in tape.named(e.PLAYHEAD_READ, e.PLAYHEAD_EFFECT):
            question = _question(fact)
            if question.startswith("content "):
                self._recorded.report(fact)
            elif question:
                self._answers.put(fact.seq, question, fact.lane)
        workspace = workspace.placed(self.place, self._other.add)
        super().__init__(driver, workspace)

    def at_end(self) -> None:
        """At the end of the process: later writes go to the scratch folder and are not recorded."""
        super().at_end()
        self._over, self.ended = True, False

    def place(self, path: str) -> str:
        """Return the place of an absolute path in the scratch folder."""
        return self._scratch.place(path)

    def cwd(self) -> str:
        """Return the working folder, as the program knows it."""
        return self._cwd or _getcwd()

    def moved(self, path: str) -> None:
        """The program has changed to this folder, as far as it knows."""
        self._cwd = path

    def touched(self, path: str) -> bool:
        """Return whether it is in the scratch folder, or was deleted here but not in the recording."""
        return path in self._other or os.path.lexists(self.place(path))

    def query(self, op: str, path: str, real: Real) -> Any:
        """See `Files.query`."""
        if self._unheard:
            return self._own(path, real)
        fact, fidelity = self._answer(op, path)
        if fact is not None and path not in self._other:
            value = self._play(op, path, fact, fidelity)
            listed = self._other and op in ("listdir", "scandir")
            return self._merged(path, value) if listed else value
        if not self.touched(path):
            raise self._blocked(op, path)
        try:
            value = self._own(path, real)
        except OSError as problem:
            failed = {a.PLAYHEAD_FILE_ERROR: problem.errno or 0}
            self._facts.read(self._facts.question(op, path), None, failed, Fidelity.LIVE)
            raise
        data = encode_value(value)
        self._facts.read(self._facts.question(op, path), data, {}, Fidelity.LIVE)
        return value

    def _merged(self, folder: str, entries: list[Any]) -> list[Any]:
        """A recorded listing, adjusted for what this run has made or deleted there differently."""
        for path in sorted(one for one in self._other if os.path.dirname(one) == folder):
            name = os.path.basename(path)
            there: list[Any] = [one for one in entries if name in (one, one[0])]
            exists = os.path.lexists(self.place(path))
            if exists and not there:
                kind = stat.S_IFMT(os.lstat(self.place(path)).st_mode)
                named = bool(entries) and isinstance(entries[0], str)
                entries = [*entries, name if named else [name, kind]]
            elif there and not exists:
                entries = [one for one in entries if one not in there]
        return entries

    def change(self, op: str, path: str, real: Real, to: str = "") -> None:
        """See `Files.change`."""
        if self._unheard:
            return self._make(op, path, real, to, known=self.touched(path))
        fact, fidelity = self._answer(op, path, to)
        if fact is not None and a.PLAYHEAD_FILE_ERROR in fact.attributes:
            return self._play(op, path, fact, fidelity, to)
        if fact is None and op not in MAKING and not self.touched(path):
            raise self._blocked(op, path, to)
        if fact is None:
            self._make(op, path, real, to, known=True)
            self._other.update(one for one in (path, to) if one.startswith("/"))
        else:
            with contextlib.suppress(OSError):
                self._make(op, path, real, to, known=True)
            if op == "rename":
                for these in (self._other, self._hollow):
                    if path in these:
                        these.discard(path)
                        these.add(to)
        return self._facts.did(self._facts.question(op, path, to), {})

    def open(self, path: str, flags: int, mode: int, real: Callable[[str | None, int], int]) -> int:
        """See `Files.open`."""
        how = how_of(flags)
        if self._unheard:
            own = how != "open" or self.touched(path)
            if own:
                self._scratch.make_parent(path)
            return _named(path, lambda: real(self.place(path) if own else None, flags))
        self._after_fork()
        fact, fidelity = self._answer(opening(how), path)
        if fact is not None and a.PLAYHEAD_FILE_ERROR in fact.attributes:
            self._play(opening(how), path, fact, fidelity)
        if fact is None and not (how in ("write", "append") or self.touched(path)):
            raise self._blocked(how, path)
        if path in self._hollow and how in ("open", "update") and fact is None:
            raise self._blocked(how, path, cause="only what was appended to it is on the tape")
        values = {} if fact is None else _values(fact)
        if fact is not None and stat.S_ISDIR(values[a.PLAYHEAD_FILE_MODE]):
            fd = self._open_folder(path, flags)
        elif fact is None or path in self._other:
            fd = self._open_own(path, flags, mode, real)
            values, fidelity = self._looks(path, fd, how), Fidelity.LIVE
        elif not stat.S_ISREG(values[a.PLAYHEAD_FILE_MODE]):
            raise self._blocked(how, path, cause="it was no file, but a device or a pipe")
        elif how == "open":
            fd = _os_open(self._recorded.file(path, fact), flags)
        else:
            fd = self._open_laid(path, flags, mode, real, fact)
        held = None if fact is None else self._recorded.told(fact).body
        body = None if held is None else Content(held.digest, held.size)
        self._handles.pop(fd, None)
        if how != "open" and stat.S_ISREG(os.fstat(fd).st_mode):
            there = a.PLAYHEAD_FILE_OFFSET in values
            start = values.get(a.PLAYHEAD_FILE_OFFSET, 0)
            # As in the recording: the content of a large file was not known when it was closed.
            large = a.PLAYHEAD_FILE_CONTENT in values
            before = b"" if body is None or large else body.digest
            self._handles[fd] = Handle(path, fd, how if there else "write", start, before)
        self._facts.read(self._facts.question(opening(how), path), body, values, fidelity)
        return fd

    def database(self, path: str) -> str | None:
        """See `Files.database`. Never opens the real database: SQLite would change it."""
        self._scratch.make_parent(path)
        place = self.place(path)
        if self._unheard:
            return place
        fact, fidelity = self._answer(DATABASE, path)
        if fact is None and not self.touched(path):
            raise self._blocked("open", path, cause="nothing on the tape says what this database holds")
        if fact is None or path in self._other:
            self._facts.read(self._facts.question(DATABASE, path), None, {}, Fidelity.LIVE)
            return place
        values = _values(fact)
        error = fact.attributes.get(a.PLAYHEAD_FILE_ERROR, 0)
        if error:
            values = {a.PLAYHEAD_FILE_ERROR: error}
            if error != errno.ENOENT:
                place = os.path.join(self._scratch.store, "nowhere", "database")
            else:
                sqlite_files.remove(place)
                self.databases.holds(path, digest_of(b""))
        elif fact.body is not None:
            data = self._tape.read(fact.body)
            sqlite_files.lay(data, place, values[a.PLAYHEAD_FILE_MODE], values[a.PLAYHEAD_FILE_MTIME_NS])
            self.databases.holds(path, digest_of(data))
        elif values:
            raise self._blocked("open", path, cause="it was too large to be kept, or busy")
        body = None if fact.body is None else Content(fact.body.digest, fact.body.size)
        self._facts.read(self._facts.question(DATABASE, path), body, values, fidelity)
        return place

    def tell_databases(self) -> None:
        """See `Files.tell_databases`. The tape that answers says it, of the same statements."""

    def _looks(self, path: str, fd: int, how: str) -> dict[str, Any]:
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            self._folders[fd] = path
        values = {a.PLAYHEAD_FILE_MODE: found.st_mode, a.PLAYHEAD_FILE_SIZE: found.st_size}
        if how in ("append", "update"):
            values[a.PLAYHEAD_FILE_OFFSET] = found.st_size
        return values

    def _open_folder(self, path: str, flags: int) -> int:
        os.makedirs(self.place(path), exist_ok=True)
        fd = _os_open(self.place(path), flags)
        self._folders[fd] = path
        return fd

    def _open_own(self, path: str, flags: int, mode: int, real: Callable[[str | None, int], int]) -> int:
        if flags & os.O_CREAT:
            self._scratch.make_parent(path)
            if not os.path.lexists(self.place(path)):
                self._other.add(path)
                if how_of(flags) == "append":
                    self._hollow.add(path)
        return _named(path, lambda: real(self.place(path), flags))

    def _open_laid(
        self,
        path: str,
        flags: int,
        mode: int,
        real: Callable[[str | None, int], int],
        fact: Fact,
    ) -> int:
        """Open for writing, over the content that was there when recorded."""
        self._scratch.make_parent(path)
        place, how = self.place(path), how_of(flags)
        size = fact.attributes.get(a.PLAYHEAD_FILE_OFFSET)
        if size is None or how == "write":
            # The file did not exist, or is truncated.
            if flags & os.O_EXCL or size is None:
                with contextlib.suppress(OSError):
                    os.unlink(place)
            self._hollow.discard(path)
        elif how == "update":
            self._scratch.lay(self._recorded.file(path, fact), place)
            self._hollow.discard(path)
        elif not os.path.exists(place) or os.stat(place).st_size != size:
            fd = _os_open(place, os.O_CREAT | os.O_WRONLY, OWN_MODE)
            os.ftruncate(fd, size)
            _os_close(fd)
            self._hollow.add(path)
        return _named(path, lambda: real(place, flags | os.O_CREAT))

    def _written(self, handle: Handle) -> Written | None:
        written = super()._written(handle)
        if written is None:
            return None
        op, content, values = written
        fact, _ = self._answer(op, handle.path)
        recorded = None if fact is None else fact.body or fact.attributes.get(a.PLAYHEAD_FILE_DIGEST)
        if isinstance(recorded, Content) and content is not None and recorded.digest == content.digest:
            if values.get(a.PLAYHEAD_REDACTED_COUNT) and op == "write":
                self._keep_own(handle, content.digest)
        elif recorded is None or recorded != values.get(a.PLAYHEAD_FILE_DIGEST):
            self._other.add(handle.path)
        return written

    def _keep_own(self, handle: Handle, digest: bytes) -> None:
        """Keep what the program wrote, credentials included, for when it reads that back."""
        own = f"/proc/self/fd/{handle.fd}"
        with contextlib.suppress(OSError):
            source = own if os.path.exists(own) else self.place(handle.path)
            self._recorded.keep(source, digest)

    @property
    def _unheard(self) -> bool:
        """Whether the asker is not on the tape: a finalizer, machinery, the child of a fork."""
        return self._over or self.quiet or self._driver.sink.instance != self._instance

    def _own(self, path: str, real: Real) -> Any:
        return _named(path, lambda: real(self.place(path) if self.touched(path) else None))

    def _make(self, op: str, path: str, real: Real, to: str, known: bool) -> None:
        self._scratch.make_parent(path)
        if op in ("rename", "link") and to.startswith("/"):
            self._scratch.make_parent(to)
        _named(path, lambda: real(self.place(path)))

    def _answer(self, op: str, path: str, to: str = "") -> tuple[Fact | None, Fidelity]:
        """Return the next recorded answer: of this lane, else of another, else the last one again."""
        question = self._facts.question(op, path, to)
        with self._lock:
            found = self._answers.take(question, lanes.current().hash)
            if found is not None:
                self._last[question], of_lane = found
                return self._tape.fact(found[0]), Fidelity.EXACT if of_lane else Fidelity.MOVED
            last = self._last.get(question)
            if last is not None and not self.touched(path):
                return self._tape.fact(last), Fidelity.LIVE
        return None, Fidelity.LIVE

    def _play(self, op: str, path: str, fact: Fact, fidelity: Fidelity, to: str = "") -> Any:
        """Give the recorded answer, and put it on the tape of this run."""
        number = fact.attributes.get(a.PLAYHEAD_FILE_ERROR)
        question = self._facts.question(op, path, to)
        if number is not None:
            self._facts.read(question, None, {a.PLAYHEAD_FILE_ERROR: number}, fidelity)
            raise OSError(number, os.strerror(number), path)
        data = b"" if fact.body is None else self._tape.read(fact.body)
        self._facts.read(question, data, {}, fidelity)
        return decode_value(data)

    def _blocked(self, op: str, path: str, to: str = "", cause: str = "") -> FileBlocked:
        self._driver.effect(f"file.{op}", self._facts.target(path, to), fidelity=Fidelity.BLOCKED)
        return FileBlocked(op, path, cause)


MAKING: Final = frozenset(("mkdir", "symlink", "mkfifo"))
"""Operations that make something if nothing exists."""


def _question(fact: Fact) -> str:
    """The question that a fact answers, as ``stat ./a.txt``; empty for facts of other boundaries."""
    at = fact.attributes
    if fact.name == e.PLAYHEAD_READ:
        kind = str(at.get(a.PLAYHEAD_READ_KIND, ""))
        return kind[len("file/") :] if kind.startswith("file/") else ""
    if fact.name == e.PLAYHEAD_EFFECT:
        kind = str(at.get(a.PLAYHEAD_EFFECT_KIND, ""))
        if kind.startswith("file."):
            return f"{kind[len('file.') :]} {at.get(a.PLAYHEAD_EFFECT_TARGET, '')}"
    return ""


def _values(fact: Fact) -> dict[str, Any]:
    return {name: value for name, value in fact.attributes.items() if name in KEPT}


KEPT: Final = frozenset(
    (
        a.PLAYHEAD_FILE_MODE,
        a.PLAYHEAD_FILE_SIZE,
        a.PLAYHEAD_FILE_MTIME_NS,
        a.PLAYHEAD_FILE_OFFSET,
        a.PLAYHEAD_FILE_DIGEST,
        a.PLAYHEAD_FILE_CONTENT,
        a.PLAYHEAD_FILE_UNKEPT,
    )
)


def _named(path: str, do: Callable[[], Any]) -> Any:
    """Return the result of ``do``; its errors name the path that the program knows."""
    try:
        return do()
    except OSError as problem:
        if problem.filename is not None:
            problem.filename = path
            if problem.filename2 is not None:
                problem.filename2 = None
        raise
