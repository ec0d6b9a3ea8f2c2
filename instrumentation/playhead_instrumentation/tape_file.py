"""Tape files, as a process reads the one it plays and writes the one of its replay."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import BinaryIO

import msgspec

from playhead_semconv.facts import Fact
from playhead_semconv.frames import MAGIC, Header, encode, read_whole
from playhead_semconv.tapes import MemoryTape

_set = msgspec.structs.force_setattr


def read_tape(path: Path) -> MemoryTape:
    """The tape in a file. `CorruptTape` names the position of damage, OSError if it is not there."""
    return MemoryTape.of_records(read_whole(path.read_bytes(), path.name))


class TapeFile:
    """A sink that writes a tape file, each fact with one unbuffered write."""

    def __init__(self, path: Path, created_ns: int) -> None:
        self._path = path
        self._created_ns = created_ns
        self._lock = threading.RLock()
        self._begin(path)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    @property
    def instance(self) -> bytes:
        """Of this process; another one after fork, whose facts go to a file of their own."""
        return self._instance

    def append(self, fact: Fact) -> int:
        """Number ``fact`` and write it. A write that fails costs the fact, not the program."""
        with self._lock:
            seq = self._next
            self._next += 1
            _set(fact, "instance", self._instance)
            _set(fact, "seq", seq)
            try:
                self._file.write(encode(fact))
            except (OSError, ValueError):
                return seq
        return seq

    def _begin(self, path: Path) -> None:
        self._instance = os.urandom(16)
        self._next = 0
        self._file: BinaryIO = open(path, "wb", buffering=0)
        self._file.write(MAGIC + encode(Header(self._instance, self._created_ns)))

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._begin(self._path.with_suffix(f".{os.getpid()}.tape"))
