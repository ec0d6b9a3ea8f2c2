"""Files with the contents that a tape holds, made when a replayed program opens them."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from typing import Any, Final

import blake3

from playhead_core.errors import TapeError, WorldBlocked
from playhead_core.facts import Fact
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_semconv import attributes as a

UNKEPT: Final = {
    "changed": "it was changed while it was read",
    "budget": "more was opened than is read behind the program's back",
    "busy": "too many large files were opened at once",
    "unreadable": "it could not be opened again",
    "ended": "the process ended before it was read",
}
"""The meaning of each reason why a content was not kept."""


class FileBlocked(WorldBlocked, FileNotFoundError):
    """A file that the tape does not know. An `OSError`, as a program expects for files."""

    def __init__(self, op: str, path: str, cause: str = "") -> None:
        WorldBlocked.__init__(
            self,
            f"the replay does not let the program {op} {path}",
            cause=cause or "the tape has no answer to it",
        )
        self.errno = errno.ENOENT
        self.strerror = self.what
        self.filename = path

    __str__ = WorldBlocked.__str__


class RecordedContents:
    """Makes these files in a folder. Safe from any thread."""

    def __init__(
        self, tape: IndexedTape, folder: str, blocked: Callable[[str, str], FileBlocked]
    ) -> None:
        """``blocked(path, cause)`` reports that the tape does not answer, and makes the error."""
        self._tape: Final = tape
        self._store: Final = folder
        self._blocked: Final = blocked
        self._lock = threading.Lock()
        self._reports: dict[Any, int] = {}
        """Facts with the contents of large files, by the number in the fact of the opening."""

    def report(self, fact: Fact) -> None:
        """Note a fact that has the content of a large file which another fact has opened."""
        self._reports[fact.attributes.get(a.PLAYHEAD_FILE_CONTENT, 0)] = fact.seq

    def keep(self, source: str, digest: bytes) -> None:
        """Keep a file, credentials included, for when the content with this digest is opened.

        Raises `OSError`.
        """
        shutil.copyfile(source, os.path.join(self._store, digest.hex()))

    def file(self, path: str, fact: Fact) -> str:
        """Path of a file with the content and modification time that ``path`` had for ``fact``.

        Raises `FileBlocked` if the content is not known.
        """
        values, fact = fact.attributes, self.told(fact)
        if fact.body is None:
            digest = fact.attributes.get(a.PLAYHEAD_FILE_DIGEST)
            if digest is None:
                why = fact.attributes.get(a.PLAYHEAD_FILE_UNKEPT)
                return self._alike_file(path, values, str(why))
            return self._same_file(path, str(digest))
        mtime_ns = int(values.get(a.PLAYHEAD_FILE_MTIME_NS, 0))
        name = os.path.join(self._store, f"{fact.body.digest.hex()}-{mtime_ns}")
        with self._lock:
            if not os.path.exists(name):
                own = os.path.join(self._store, fact.body.digest.hex())
                if os.path.exists(own):
                    shutil.copyfile(own, name)
                else:
                    try:
                        data = self._tape.read(fact.body)
                    except TapeError as problem:
                        raise FileBlocked("open", path, str(problem)) from None
                    with open(name, "wb") as file:
                        file.write(data)
                os.utime(name, ns=(mtime_ns, mtime_ns))
        return name

    def told(self, fact: Fact) -> Fact:
        """Return the fact with the content of the file that ``fact`` opened; else ``fact`` itself."""
        number = fact.attributes.get(a.PLAYHEAD_FILE_CONTENT)
        seq = None if number is None else self._reports.get(number)
        return (None if seq is None else self._tape.fact(seq)) or fact

    def _alike_file(self, path: str, values: dict[str, Any], why: str) -> str:
        """The real file, if it has the recorded size and time; for a file whose content was not kept."""
        try:
            found = os.stat(path)
        except OSError:
            looks = "it is not there any more"
        else:
            if (found.st_size, found.st_mtime_ns) == (
                values.get(a.PLAYHEAD_FILE_SIZE),
                values.get(a.PLAYHEAD_FILE_MTIME_NS),
            ):
                return path
            looks = "the file that is there now has another size or time"
        reason = UNKEPT.get(why, UNKEPT["ended"])
        cause = f"its content is not on the tape ({reason}), and {looks}"
        raise self._blocked(path, cause)

    def _same_file(self, path: str, digest: str) -> str:
        """Return the real file, if it has the recorded digest; for a file that was too large to keep."""
        try:
            with open(path, "rb") as file:
                hasher = blake3.blake3()
                while piece := file.read(1 << 20):
                    hasher.update(piece)
        except OSError:
            hasher = None
        if hasher is None or hasher.hexdigest() != digest:
            raise self._blocked(path, "it was too large to be kept, and is not there as it was")
        return path
