"""Reads the undelivered segments of an instance, and deletes delivered ones."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from playhead_core.facts import Fact
from playhead_core.process.own_descriptors import OwnDescriptor, open_own, read_file
from playhead_core.tape.frames import (
    FACT,
    LOG,
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


class DeliveryCursor:
    """The file with the position up to which a tape is delivered: one line, overwritten in place."""

    def __init__(self, home: Path) -> None:
        self._path = home / CURSOR
        self._file: OwnDescriptor | None = None

    def store(self, position: Position) -> None:
        """Write the cursor, if the folder exists and the disk takes it.

        If not, deliveries since the last cursor are repeated after a restart, which is harmless.
        """
        with contextlib.suppress(OSError):
            number = -1 if self._file is None else self._file.number
            if number < 0:
                self._file = open_own(self._path, os.O_RDWR | os.O_CREAT)
                number = self._file.number
            os.pwrite(number, b"%020d %020d\n" % position, 0)

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._file is not None:
            self._file.close()


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


class SpoolBatch(msgspec.Struct):
    """Consecutive records of one segment."""

    segment: int
    """Number of the segment."""
    end: Position
    """Where the next batch begins."""
    tape: bytes = MAGIC
    """The records as a tape file of version 1."""
    facts: int = 0
    """Number of facts among the records."""
    spans: int = 0
    logs: int = 0
    first: int = -1
    """Number of the first fact; -1 if there is none."""
    last: int = -1
    resource: dict[str, Any] = {}
    damage: str = ""
    """Describes damaged bytes of a finished segment; the next frame begins at ``end``."""

    @property
    def count(self) -> int:
        """Number of facts, spans and log records."""
        return self.facts + self.spans + self.logs

    def records(self) -> list[Record]:
        """The records, without those that this version cannot read."""
        return [record for _, record in Scan(self.tape)]


def read_batch(segments: Segments, start: Position, limit_bytes: int) -> SpoolBatch:
    """Read records of one segment from ``start`` on, up to ``limit_bytes``, but at least one.

    The batch is empty if there is nothing after ``start`` yet.
    """
    batch = SpoolBatch(start.segment, start)
    for number in segments.numbers():
        if number < start.segment:
            continue
        batch.segment, finished = number, segments.finished(number)
        data = segments.data(number)
        offset = start.offset if number == start.segment else 0
        heading = Scan(data)
        for _, header in heading:
            if isinstance(header, Header):
                batch.resource = dict(header.resource)
            break
        begin = max(offset, heading.end)
        scan = Scan(data, begin) if begin else heading
        first, most = scan.end, limit_bytes - len(MAGIC)
        facts: list[memoryview] = []
        for at, payload in scan.payloads():
            if scan.end - first > most and at > first:
                batch.end = Position(number, at)
                batch.tape = MAGIC + bytes(data[first:at])
                _number(batch, facts)
                return batch
            tag = tag_of(payload)
            if tag == FACT:
                facts.append(payload)
            batch.spans += tag == SPAN
            batch.logs += tag == LOG
        _number(batch, facts)
        batch.end = Position(number, scan.end)
        batch.tape = MAGIC + bytes(data[first : scan.end])
        following = next_frame(data, scan.end) if finished and scan.end < len(data) else None
        if finished and (scan.torn or following is not None):
            batch.damage = f"segment {number}, byte {scan.end}: {scan.problem}"
            batch.end = Position(number + 1, 0) if following is None else Position(number, following)
        if batch.count or batch.damage or not finished:
            return batch
    return batch


def _number(batch: SpoolBatch, facts: list[memoryview]) -> None:
    """Note how many facts there are, and the numbers of the first and the last one."""
    batch.facts = len(facts)
    if facts:
        batch.first, batch.last = _number_of(facts[0]), _number_of(facts[-1])


def _number_of(payload: memoryview) -> int:
    record = decoded(payload)
    return record.seq if isinstance(record, Fact) else -1


class LiveSegments:
    """Segments of this process, read from its active segments while they exist, else from the disk."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._instance = spool.instance
        self._home = spool.folders.home(spool.instance)
        self._cursor = DeliveryCursor(self._home)

    @property
    def instance(self) -> bytes:
        """The process instance."""
        return self._instance

    def numbers(self) -> list[int]:
        """Numbers of the undelivered segments, ascending."""
        return sorted(self._spool.segments.copy())

    def finished(self, number: int) -> bool:
        """Whether writing continues in another active segment."""
        active = self._spool.active_segments.get(number)
        return active is None or active.rolled

    def data(self, number: int) -> memoryview | bytes:
        """From memory if the active segment still exists, else from the disk."""
        active = self._spool.active_segments.get(number)
        if active is not None:
            return memoryview(active.map)[: active.written]
        return read_file(self._home / segment_name(number, "tape"))

    @property
    def facts(self) -> int:
        """How many facts were appended so far."""
        return self._spool.count

    def end(self) -> Position:
        """The current end of the tape; its start while nothing is written."""
        number = max(self.numbers(), default=0)
        active = self._spool.active_segments.get(number)
        return Position(number, active.written if active is not None else 0)

    def request_wakeup(self) -> None:
        """Let the next append wake the shipper."""
        self._spool.is_idle = True

    def load(self) -> Position:
        """The start: a process begins with an empty tape."""
        return Position(0, 0)

    def delivered(self, position: Position) -> None:
        """Delete the segments before ``position``, in memory and on disk, and store the cursor."""
        for number in self.numbers():
            if number >= position.segment:
                break
            active = self._spool.active_segments.pop(number, None)
            if active is not None:
                active.released = True
                active.remove()
            remove_file(self._home / segment_name(number, "tape"))
            self._spool.segments.discard(number)
        self._cursor.store(position)

    def close(self) -> None:
        """Close the cursor. Idempotent."""
        self._cursor.close()


class LeftSegments:
    """Segments of a dead process: on disk, and active segments that were not copied."""

    def __init__(self, instance: bytes, folders: SpoolFolders) -> None:
        self._instance = instance
        self._home = folders.home(instance)
        self._active_folders = (folders.active_home(instance), self._home)
        self._cursor = DeliveryCursor(self._home)

    @property
    def instance(self) -> bytes:
        """The process instance."""
        return self._instance

    def numbers(self) -> list[int]:
        """Numbers of the existing segments, ascending."""
        numbers = set(segment_numbers(self._home, "tape"))
        for folder in self._active_folders:
            numbers |= set(segment_numbers(folder, "head"))
        return sorted(numbers)

    def finished(self, number: int) -> bool:
        """Always: the process is dead."""
        return True

    def data(self, number: int) -> memoryview | bytes:
        """From the active segment if it exists, because it includes everything in the copy."""
        for folder in self._active_folders:
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
            for folder in self._active_folders:
                remove_file(folder / segment_name(number, "head"))
        self._cursor.store(position)

    def close(self) -> None:
        """Close the cursor. Idempotent."""
        self._cursor.close()
