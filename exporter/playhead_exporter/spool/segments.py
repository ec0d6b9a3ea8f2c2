"""Reading the segments of an instance: what is still to be delivered, and letting go of the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from playhead_exporter.spool.cursor import Position, load_cursor, store_cursor
from playhead_exporter.spool.places import Places, remove_file, segment_name, segment_numbers
from playhead_exporter.spool.spool import Spool
from playhead_semconv.frames import Header, Record, Scan, next_frame


class Segments(Protocol):
    """The segments of one process instance, ascending by number."""

    @property
    def instance(self) -> bytes:
        """Whose they are."""
        ...

    def numbers(self) -> list[int]:
        """Numbers of those that are there, ascending."""
        ...

    def finished(self, number: int) -> bool:
        """Whether nothing will be added to it any more."""
        ...

    def data(self, number: int) -> memoryview | bytes:
        """Its bytes so far, beginning with the magic. OSError if they cannot be read."""
        ...

    def load(self) -> Position:
        """Up to where they are delivered."""
        ...

    def delivered(self, position: Position) -> None:
        """Everything before ``position`` is delivered and may be deleted."""
        ...


@dataclass(slots=True)
class Window:
    """Some consecutive records of a tape."""

    segment: int
    """The segment that they are of."""
    end: Position
    """Where the next window begins."""
    records: list[Record] = field(default_factory=list[Record])
    resource: dict[str, Any] = field(default_factory=dict[str, Any])
    damage: str = ""
    """Bytes of a finished segment that are no frame; the next frame begins at ``end``."""


def read_window(segments: Segments, start: Position, limit_bytes: int) -> Window:
    """The records from ``start`` on, at most ``limit_bytes`` of frames, but at least one record.

    All of them are of one segment. Empty if there is nothing (yet) behind ``start``.
    """
    window = Window(start.segment, start)
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
        first = scan.end
        for _, record in scan:
            if not isinstance(record, Header):
                window.records.append(record)
            if scan.end - first >= limit_bytes:
                window.end = Position(number, scan.end)
                return window
        window.end = Position(number, scan.end)
        behind = next_frame(data, scan.end) if finished and scan.end < len(data) else None
        if finished and (scan.torn or behind is not None):
            window.damage = f"segment {number}, byte {scan.end}: {scan.problem}"
            window.end = Position(number + 1, 0) if behind is None else Position(number, behind)
        if window.records or window.damage or not finished:
            return window
    return window


class LiveSegments:
    """Those of this process: from its heads, without waiting for the disk, else from the disk."""

    def __init__(self, spool: Spool, places: Places) -> None:
        self._spool = spool
        self._places = places
        self._instance = spool.instance

    @property
    def instance(self) -> bytes:
        """Whose they are."""
        return self._instance

    def numbers(self) -> list[int]:
        """Numbers of those that are not yet delivered, ascending."""
        return sorted(self._spool.segments.copy())

    def finished(self, number: int) -> bool:
        """Whether another head is written now."""
        head = self._spool.heads.get(number)
        return head is None or head.rolled

    def data(self, number: int) -> memoryview | bytes:
        """From memory where it still is."""
        head = self._spool.heads.get(number)
        if head is not None:
            return memoryview(head.map)[: head.written]
        return (self._places.home(self._instance) / segment_name(number, "tape")).read_bytes()

    def end(self) -> Position:
        """Where the tape ends now; the start of it while nothing is written."""
        number = max(self.numbers(), default=0)
        head = self._spool.heads.get(number)
        return Position(number, head.written if head is not None else 0)

    def rest(self) -> None:
        """The next append wakes the thread that delivers."""
        self._spool.rests = True

    def load(self) -> Position:
        """A process begins with an empty tape."""
        return Position(0, 0)

    def delivered(self, position: Position) -> None:
        """Delete the segments before ``position``, in memory and on disk; keep the place."""
        home = self._places.home(self._instance)
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
    """Those that a dead process left: on disk, and heads that the disk did not take."""

    def __init__(self, instance: bytes, places: Places) -> None:
        self._instance = instance
        self._home = places.home(instance)
        self._heads = (places.heads(instance), self._home)

    @property
    def instance(self) -> bytes:
        """Whose they are."""
        return self._instance

    def numbers(self) -> list[int]:
        """Numbers of those that are there, ascending."""
        found = set(segment_numbers(self._home, "tape"))
        for folder in self._heads:
            found |= set(segment_numbers(folder, "head"))
        return sorted(found)

    def finished(self, number: int) -> bool:
        """The dead write no more."""
        return True

    def data(self, number: int) -> memoryview | bytes:
        """From the head where there is one: it has everything that the copy has."""
        for folder in self._heads:
            try:
                return (folder / segment_name(number, "head")).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                continue
        return (self._home / segment_name(number, "tape")).read_bytes()

    def load(self) -> Position:
        """What the process, or who went on for it, had delivered."""
        return load_cursor(self._home)

    def delivered(self, position: Position) -> None:
        """Delete the segments before ``position``; keep the place."""
        for number in self.numbers():
            if number >= position.segment:
                break
            remove_file(self._home / segment_name(number, "tape"))
            for folder in self._heads:
                remove_file(folder / segment_name(number, "head"))
        if self._home.is_dir():
            store_cursor(self._home, position)
