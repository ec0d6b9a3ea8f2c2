"""A sink that writes a tape file; replays record into one."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Final

import msgspec

from playhead_core.facts import Fact
from playhead_core.process.own_descriptors import open_own
from playhead_core.tape.frames import MAGIC, Header, encode
from playhead_core.tape.plain_facts import UNENCODABLE, plain
from playhead_instrumentation.patching import at_fork
from playhead_instrumentation.patching.unpatched import REAL

FLAGS: Final = os.O_WRONLY | os.O_APPEND

_write: Final = os.write


class TapeWriter:
    """Writes facts to ``path``, each with one system call. The file is readable by its owner only.

    In the child of a fork it continues in a new file beside it, named by process id.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.of_child: Path | None = None
        """File of the child of the next fork; None: beside this one."""
        self._lock = threading.RLock()
        self._begin(path)
        at_fork.in_child(self._after_fork)

    @property
    def count(self) -> int:
        """Number of facts so far."""
        return self._next

    def append(self, fact: Fact) -> int:
        """Write one fact. Returns its number, even if writing failed."""
        with self._lock:
            seq, self._next = self._next, self._next + 1
            fact = msgspec.structs.replace(fact, instance=self.instance, seq=seq)
            try:
                frame = encode(fact)
            except UNENCODABLE:
                frame = encode(plain(fact))
            with contextlib.suppress(OSError):
                number = self._file.number
                if number < 0:  # the program has closed it
                    self._file = open_own(self._path, FLAGS)
                    number = self._file.number
                _write(number, frame)
        return seq

    def _begin(self, path: Path) -> None:
        self.instance = os.urandom(16)
        """The process instance to which the facts belong."""
        self._next = 0
        self._file = open_own(path, FLAGS | os.O_CREAT | os.O_TRUNC)
        _write(self._file.number, MAGIC + encode(Header(self.instance, REAL.time_ns())))

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._file.close()
        if self.of_child is not None:
            self._path, self.of_child = self.of_child, None
        else:
            self._path = self._path.with_suffix(f".{os.getpid()}{self._path.suffix}")
        self._begin(self._path)
