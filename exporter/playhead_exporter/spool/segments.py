"""Reads the undelivered segments of an instance, and deletes delivered ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from playhead_core.facts import Fact
from playhead_core.process.own_descriptors import read_file, write_file
from playhead_core.tape.frames import (
    FACT,
    MAGIC,
    SPAN,
    Header,
    Record,
    Scan,
    decoded,
    next_frame,
    tag_of,
)
from playhead_exporter.spool.folders import (
    CURSOR,
    SpoolFolders,
    remove_file,
    segment_name,
    segment_numbers,
)
from playhead_exporter.spool.spool import Spool


class Position(NamedTuple):
    """A position on a tape: number of a segment, and offset of the next frame in it."""

    segment: int
    offset: int


START = Position(0, 0)


def load_cursor(home: Path) -> Position:
    """Read the cursor in ``home``; the start of the tape if there is no valid one."""
    try:
        segment, offset = read_file(home / CURSOR).split()
        return Position(int(segment), int(offset))
    except (OSError, ValueError):
        return START


def store_cursor(home: Path, position: Position) -> bool:
    """Write the cursor atomically. False if the disk does not take it.

    In that case deliveries since the last cursor are repeated after a restart, which is harmless.
    """
    path = home / CURSOR
    draft = path.with_suffix(".draft")
    try:
        write_file(draft, f"{position.segment} {position.offset}\n".encode("ascii"))
        os.replace(draft, path)
    except OSError:
        return False
    return True


class Segments(Protocol):
    """The segments of one process instance, ascending by number."""

    @property
    def instance(self) -> bytes:
        """The process instance."""
        ...

    def numbers(self) -> list[int]:
        """Numbers of the existing segments, ascending."""
        ...

    def finished(self, number: int) -> bool:
        """Whether nothing more will be added to a segment."""
        ...

    def data(self, number: int) -> memoryview | bytes:
        """The bytes of a segment so far, from the magic on. OSError if they cannot be read."""
        ...

    def load(self) -> Position:
        """The position up to which they are delivered."""
        ...

    def delivered(self, position: Position) -> None:
        """Mark everything before ``position`` as delivered; it may be deleted."""
        ...


class SpoolWindow(msgspec.Struct):
    """Consecutive records of one segment."""

    segment: int
    """Number of the segment."""
    end: Position
    """Where the next window begins."""
    tape: bytes = MAGIC
    """The records as a tape file of version 1."""
    facts: int = 0
    """Number of facts among the records."""
    spans: int = 0
    resource: dict[str, Any] = {}
    damage: str = ""
    """Describes damaged bytes of a finished segment; the next frame begins at ``end``."""

    def records(self) -> list[Record]:
        """The records, without those that this version cannot read."""
        return [record for _, record in Scan(self.tape)]

    def numbers(self) -> tuple[int, int]:
        """Numbers of the first and the last fact; -1 if there is none."""
        facts = [payload for _, payload in Scan(self.tape).payloads() if tag_of(payload) == FACT]
        return (_number_of(facts[0]), _number_of(facts[-1])) if facts else (-1, -1)


def read_window(segments: Segments, start: Position, limit_bytes: int) -> SpoolWindow:
    """Read records of one segment from ``start`` on, up to ``limit_bytes``, but at least one.

    The window is empty if there is nothing behind ``start`` yet.
    """
    window = SpoolWindow(start.segment, start)
    for number in segments.numbers():
        if number < start.segment:
            continue
        window.segment, finished = number, segments.finished(number)
        data = segments.data(number)
        offset = start.offset if number == start.segment else 0
        heading = Scan(data)
        for _, header in heading:
            if isinstance(header, Header):
                window.resource = dict(header.resource)
            break
        begin = max(offset, heading.end)
        scan = Scan(data, begin) if begin else heading
        first, most = scan.end, limit_bytes - len(MAGIC)
        for at, payload in scan.payloads():
            if scan.end - first > most and at > first:
                window.end = Position(number, at)
                window.tape = MAGIC + bytes(data[first:at])
                return window
            tag = tag_of(payload)
            window.facts += tag == FACT
            window.spans += tag == SPAN
        window.end = Position(number, scan.end)
        window.tape = MAGIC + bytes(data[first : scan.end])
        behind = next_frame(data, scan.end) if finished and scan.end < len(data) else None
        if finished and (scan.torn or behind is not None):
            window.damage = f"segment {number}, byte {scan.end}: {scan.problem}"
            window.end = Position(number + 1, 0) if behind is None else Position(number, behind)
        if window.facts or window.spans or window.damage or not finished:
            return window
    return window


def _number_of(payload: memoryview) -> int:
    found = decoded(payload)
    return found.seq if isinstance(found, Fact) else -1


class LiveSegments:
    """Segments of this process, read from its heads while they exist, else from the disk."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._instance = spool.instance

    @property
    def instance(self) -> bytes:
        """The process instance."""
        return self._instance

    def numbers(self) -> list[int]:
        """Numbers of the undelivered segments, ascending."""
        return sorted(self._spool.segments.copy())

    def finished(self, number: int) -> bool:
        """Whether writing continues in another head."""
        head = self._spool.heads.get(number)
        return head is None or head.rolled

    def data(self, number: int) -> memoryview | bytes:
        """From memory if the head still exists, else from the disk."""
        head = self._spool.heads.get(number)
        if head is not None:
            return memoryview(head.map)[: head.written]
        return read_file(self._spool.folders.home(self._instance) / segment_name(number, "tape"))

    @property
    def facts(self) -> int:
        """How many facts were appended so far."""
        return self._spool.count

    def end(self) -> Position:
        """The current end of the tape; its start while nothing is written."""
        number = max(self.numbers(), default=0)
        head = self._spool.heads.get(number)
        return Position(number, head.written if head is not None else 0)

    def rest(self) -> None:
        """Let the next append wake the shipper."""
        self._spool.rests = True

    def load(self) -> Position:
        """The start: a process begins with an empty tape."""
        return Position(0, 0)

    def delivered(self, position: Position) -> None:
        """Delete the segments before ``position``, in memory and on disk, and store the cursor."""
        home = self._spool.folders.home(self._instance)
        for number in self.numbers():
            if number >= position.segment:
                break
            head = self._spool.heads.pop(number, None)
            if head is not None:
                head.released = True
                head.remove()
            remove_file(home / segment_name(number, "tape"))
            self._spool.segments.discard(number)
        if home.is_dir():
            store_cursor(home, position)


class LeftSegments:
    """Segments of a dead process: on disk, and heads that were not copied."""

    def __init__(self, instance: bytes, folders: SpoolFolders) -> None:
        self._instance = instance
        self._home = folders.home(instance)
        self._heads = (folders.heads(instance), self._home)

    @property
    def instance(self) -> bytes:
        """The process instance."""
        return self._instance

    def numbers(self) -> list[int]:
        """Numbers of the existing segments, ascending."""
        found = set(segment_numbers(self._home, "tape"))
        for folder in self._heads:
            found |= set(segment_numbers(folder, "head"))
        return sorted(found)

    def finished(self, number: int) -> bool:
        """Always: the process is dead."""
        return True

    def data(self, number: int) -> memoryview | bytes:
        """From the head if it exists, because it includes everything in the copy."""
        for folder in self._heads:
            try:
                return read_file(folder / segment_name(number, "head"))
            except (FileNotFoundError, NotADirectoryError):
                continue
        return read_file(self._home / segment_name(number, "tape"))

    def load(self) -> Position:
        """The stored cursor."""
        return load_cursor(self._home)

    def delivered(self, position: Position) -> None:
        """Delete the segments before ``position`` and store the cursor."""
        for number in self.numbers():
            if number >= position.segment:
                break
            remove_file(self._home / segment_name(number, "tape"))
            for folder in self._heads:
                remove_file(folder / segment_name(number, "head"))
        if self._home.is_dir():
            store_cursor(self._home, position)
