"""The file system of a fork or a resume: a tape answers as far as it goes, then the disk does.

What the recorded run wrote is already on the disk and is not written again. What it was writing when its
tape ended may or may not be on the disk; the program writes it when it reaches that point again. A file
that is open for writing at that point is in the scratch folder; its descriptor is then made one of the
file on disk.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from playhead_core.facts import Fact, Fidelity
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.files.played import PlayedFiles
from playhead_instrumentation.libraries.files.recorded import (
    DATABASE,
    Files,
    Handle,
    Real,
    Written,
    how_of,
    opening,
)
from playhead_instrumentation.libraries.sqlite_files import Databases, dump, snapshot
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.bodies import common_prefix
from playhead_instrumentation.recorder.unused import UnusedResponses
from playhead_semconv import attributes as a
from playhead_semconv import events as e

log = Log(__name__)

_os_open: Final = os.open
_os_close: Final = os.close
_chdir: Final = os.chdir
_monotonic: Final = time.monotonic
_MAKES: Final = os.O_CREAT | os.O_EXCL | os.O_TRUNC

LOCKED_S: Final = 5.0
"""How long to wait for a database that another process has locked, in seconds."""

UNREADABLE: Final = "?"
"""Stands for the digest of a database that is locked."""

TapeAnswer: TypeAlias = tuple[Fact, Fidelity]


class BranchFiles(PlayedFiles):
    """Answers from a tape, then from the disk. Safe from any thread."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """See `PlayedFiles`."""
        self._given = threading.local()
        self._laid: set[str] = set()
        """Databases that stay in the scratch folder until the program closes them."""
        self._ours: dict[str, set[str]] = {}
        """Digests that these databases have had on disk in this run or in the run that it continues."""
        self.say: Callable[[str], None] = lambda text: None
        """Called with a message on a database that another process has changed."""
        self._brought = False
        """Whether the world has been asked."""
        self._unbrought: dict[int, tuple[Handle, int]] = {}
        """Files in the scratch folder that are open for writing, with their flags, by descriptor."""
        super().__init__(*args, **kwargs)
        # Contents that the tape holds are not put on the tape again.
        self._facts.held |= {fact.body.digest for fact in self._tape.facts() if fact.body is not None}

    def forget(self) -> None:
        """Let the disk answer from now on."""
        with self._lock:
            self._answers = UnusedResponses()
        self.bring()

    def bring(self, path: str = "") -> None:
        """Put everything written so far on the disk before the world is asked.

        ``path``: bring only this file; by default all.
        """
        if not self._brought and not path:
            self._brought = True
            for laid in list(self._laid):
                self._is_ours(laid, self._digest_at(self.place(laid)))
        for fd, (handle, flags) in list(self._unbrought.items()):
            if path in ("", handle.path):
                try:
                    self._bring(fd, handle, flags)
                except Exception:
                    log.debug("playhead could not bring %s to the disk", handle.path, exc_info=True)

    def moved(self, path: str) -> None:
        """The program has changed to this folder; the process does too."""
        super().moved(path)
        with contextlib.suppress(OSError):
            _chdir(path)

    def query(self, op: str, path: str, real: Real) -> Any:
        """See `Files.query`."""
        if self._by_tape(op, path):
            return super().query(op, path, real)
        self.bring(path)
        return Files.query(self, op, path, real)

    def change(self, op: str, path: str, real: Real, to: str = "") -> None:
        """See `Files.change`."""
        if self._by_tape(op, path, to):
            return super().change(op, path, real, to)
        self.bring(path)
        return Files.change(self, op, path, real, to)

    def open(self, path: str, flags: int, mode: int, real: Callable[[str | None, int], int]) -> int:
        """See `Files.open`."""
        if not self._by_tape(opening(how_of(flags)), path):
            self.bring(path)
            return Files.open(self, path, flags, mode, real)
        fd = super().open(path, flags, mode, real)
        handle = self._handles.get(fd)
        if handle is not None:
            self._unbrought[fd] = handle, flags
        return fd

    def closing(self, fd: int) -> None:
        """See `Files.closing`."""
        super().closing(fd)
        self._unbrought.pop(fd, None)

    def database(self, path: str) -> str | None:
        """See `Files.database`."""
        if self._by_tape(DATABASE, path):
            self._laid.add(path)
            return super().database(path)
        Files.database(self, path)
        return self.place(path) if path in self._laid else None

    def _renew(self) -> None:
        super()._renew()
        self.databases = Databases(
            lambda path: self.place(path) if path in self._laid else path, self._limit_bytes
        )
        self.workspace.is_database = self.databases.is_open

    def tell_databases(self) -> None:
        """See `Files.tell_databases`. The tape of a fork is to say it of itself."""
        Files.tell_databases(self)

    def _settle_database(self, path: str, most_bytes: int = sys.maxsize) -> None:
        if path not in self._laid:
            return super()._settle_database(path, most_bytes)
        said = self.databases.changed(path, most_bytes)
        if said is not None:
            digests = self._facts.digests(said)
            digest = digests[a.PLAYHEAD_FILE_DIGEST]
            self._facts.did(self._facts.question("write", path), digests)
            found = self._take("write", path)
            if found is None or found[0].attributes.get(a.PLAYHEAD_FILE_DIGEST) != digest:
                self._put_database(path, digest)

    def _put_database(self, path: str, digest: str) -> None:
        """Replace the database on the disk by the program's. Keep a copy of a state not of this run."""
        there = self._digest_at(path)
        if there not in ("", UNREADABLE, digest) and there not in self._written_before(path):
            kept = _free(f"{path}.before-resume")
            _copy_database(path, kept)
            self.say(f"{path} held what this run has not written: that is kept in {kept}")
        try:
            _copy_database(self.place(path), path)
        except Exception as problem:
            made = _free(f"{path}.from-resume")
            _copy_database(self.place(path), made)
            self.say(f"{path} could not be written ({problem}): what the run made of it is in {made}")
        self._is_ours(path, digest)

    def _is_ours(self, path: str, digest: str) -> None:
        self._ours.setdefault(path, set()).add(digest)

    def _digest_at(self, place: str) -> str:
        """Digest of the content of the database; empty if there is none."""
        try:
            data = snapshot(place)
        except FileNotFoundError:
            return ""
        except OSError:
            return UNREADABLE
        return UNREADABLE if data is None else self._digest(data)

    def _digest(self, data: bytes) -> str:
        return self._facts.digest(dump(data)) if data else ""

    def _written_before(self, path: str) -> set[str]:
        """Digests of all states of the database on the tape and in this run."""
        target = self._facts.target(path)
        known = self._ours.setdefault(path, set())
        for fact in self._tape.facts():
            at = fact.attributes
            if fact.name == e.PLAYHEAD_EFFECT and at.get(a.PLAYHEAD_EFFECT_TARGET) == target:
                known.add(str(at.get(a.PLAYHEAD_FILE_DIGEST, "")))
            elif at.get(a.PLAYHEAD_READ_KIND) == f"file/{DATABASE} {target}" and fact.body is not None:
                known.add(self._digest(self._tape.read(fact.body)))
        return known

    def at_end(self) -> None:
        """See `Files.at_end`."""
        Files.at_end(self)

    def _by_tape(self, op: str, path: str, to: str = "") -> bool:
        """Return whether the tape answers. `_answer` gives the answer then."""
        answer = None if self._unheard else self._take(op, path, to)
        self._given.answer = answer
        return answer is not None

    def _take(self, op: str, path: str, to: str = "") -> TapeAnswer | None:
        """Return the next recording of this question in this lane."""
        question = self._facts.question(op, path, to)
        with self._lock:
            found = self._answers.take(question, lanes.current().hash, elsewhere=False)
        fact = None if found is None else self._tape.fact(found[0])
        return None if fact is None else (fact, Fidelity.EXACT)

    def _answer(self, op: str, path: str, to: str = "") -> tuple[Fact | None, Fidelity]:
        given: TapeAnswer | None = getattr(self._given, "answer", None)
        self._given.answer = None
        return given or (None, Fidelity.LIVE)

    def _written(self, handle: Handle) -> Written | None:
        known = self._unbrought.get(handle.fd)
        written = Files._written(self, handle)
        if written is None or known is None or known[0] is not handle:
            return written
        op, content, values = written
        found = self._take(op, handle.path)
        if found is not None and content is not None and found[0].body is not None:
            done = found[0].body.digest == content.digest
        else:
            large = values.get(a.PLAYHEAD_FILE_DIGEST)
            done = found is not None and found[0].attributes.get(a.PLAYHEAD_FILE_DIGEST) == large
        if not done:
            self._settle(handle, over=True)
        return written

    def _bring(self, fd: int, handle: Handle, flags: int) -> None:
        """Make the descriptor one of the file on disk, unless that file is ahead of the program."""
        if not self._settle(handle, over=False):
            return
        disk = _os_open(handle.path, flags & ~_MAKES)
        try:
            os.lseek(disk, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
            os.dup2(disk, fd, inheritable=os.get_inheritable(fd))
        finally:
            _os_close(disk)
        self._unbrought.pop(fd, None)

    def _settle(self, handle: Handle, *, over: bool) -> bool:
        """Put on disk what the program has written; False if the disk has more and it goes on.

        ``over``: the program writes no more.
        """
        start = handle.start if handle.how == "append" else 0
        now = self._scratched(handle, start)
        there = _read(handle.path, start)
        if there is not None and len(there) > len(now) and there.startswith(now):
            if not over:
                return False
            if handle.how == "append":
                return True
        if there == now:
            return True
        mode = stat.S_IMODE(os.fstat(handle.fd).st_mode)
        disk = _os_open(handle.path, os.O_RDWR | os.O_CREAT, mode)
        try:
            if handle.how == "append":
                shared = common_prefix(there, now) if there else 0
                os.lseek(disk, 0, os.SEEK_END)
            else:
                shared = 0
                os.ftruncate(disk, 0)
            left = memoryview(now)[shared:]
            while left:
                left = left[os.write(disk, left) :]
        finally:
            _os_close(disk)
        return True

    def _scratched(self, handle: Handle, start: int) -> bytes:
        own = f"/proc/self/fd/{handle.fd}"
        return _read(own if os.path.exists(own) else self.place(handle.path), start) or b""


def _free(path: str) -> str:
    """``path``, or the first numbered variant of it that does not exist."""
    number, found = 1, path
    while os.path.lexists(found):
        number, found = number + 1, f"{path}-{number + 1}"
    return found


def _copy_database(source: str, target: str) -> None:
    import sqlite3

    until_s = _monotonic() + LOCKED_S

    def look(status: int, remaining: int, total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and _monotonic() > until_s:
            raise sqlite3.OperationalError("database is locked")

    with (
        contextlib.closing(sqlite3.connect(source)) as laid,
        contextlib.closing(sqlite3.connect(target)) as disk,
    ):
        laid.backup(disk, progress=look)  # `backup` itself retries for ever


def _read(path: str, start: int) -> bytes | None:
    try:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read()
    except FileNotFoundError:
        return None
