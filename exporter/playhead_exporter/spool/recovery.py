"""What dead processes left in a spool: found, completed from their heads, delivered, deleted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playhead_exporter.spool.cursor import Position
from playhead_exporter.spool.owner import OwnerLock, owner_alive, owner_pid
from playhead_exporter.spool.places import (
    FILE_MODE,
    Places,
    make_folder,
    remove_folder,
    segment_name,
    segment_numbers,
)
from playhead_exporter.spool.segments import LeftSegments, read_window
from playhead_semconv.tape.frames import Scan, next_frame


@dataclass(slots=True)
class Left:
    """What a dead process left, ours as long as we hold its locks."""

    segments: LeftSegments
    _folders: list[Path]
    _locks: list[OwnerLock]

    def remove(self) -> None:
        """Everything is delivered: delete the instance's folders."""
        numbers = self.segments.numbers()
        if numbers:
            self.segments.delivered(Position(numbers[-1] + 1, 0))
        for folder in self._folders:
            remove_folder(folder)
        self.let_go()

    def let_go(self) -> None:
        """Somebody else may take it up."""
        for lock in self._locks:
            lock.release()
        self._locks.clear()


def take_left(places: Places, instance: bytes) -> Left | None:
    """Take over what ``instance`` left; None if it lives, or somebody else has taken it.

    Heads whose spool was deleted are deleted. What the disk copy lacks is completed from the heads
    first, as far as the disk takes it.
    """
    folders = [
        folder
        for folder in dict.fromkeys((places.heads(instance), places.home(instance)))
        if folder.is_dir()
    ]
    locks: list[OwnerLock] = []
    for folder in folders:
        lock = OwnerLock.take(folder)
        if lock is None:
            for held in locks:
                held.release()
            return None
        locks.append(lock)
    if not locks:
        return None
    if places.stale(instance):
        Left(LeftSegments(instance, places), folders, locks).remove()
        return None
    home = places.home(instance)
    for folder in folders:
        for number in segment_numbers(folder, "head"):
            with contextlib.suppress(OSError):
                _complete(folder / segment_name(number, "head"), home, number)
    if home.is_dir() and home not in folders:
        folders.append(home)
    return Left(LeftSegments(instance, places), folders, locks)


def _complete(head: Path, home: Path, number: int) -> None:
    """Copy the whole frames of ``head`` to its segment and delete it. OSError: the head stays."""
    data = head.read_bytes()
    scan = Scan(data)
    frames, end = sum(1 for _ in scan), scan.end
    if next_frame(data, scan.end) is not None:  # behind damage, where whoever delivers goes on
        frames, end = 2, len(data.rstrip(b"\0"))
    if frames > 1:
        make_folder(home)
        path = home / segment_name(number, "tape")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            done = os.fstat(fd).st_size
            while done < end:
                done += os.pwrite(fd, data[done:end], done)
        finally:
            os.close(fd)
    head.unlink()


@dataclass(frozen=True, slots=True)
class Pending:
    """What one instance has not yet delivered."""

    instance: bytes
    alive: bool
    pid: int | None
    facts: int
    spans: int
    bytes: int
    agent: str
    """``service.name`` of its resource."""


def pending(places: Places) -> Iterator[Pending]:
    """What is undelivered in this spool, instance by instance. Changes nothing.

    Of living processes it is what their last delivery left, and may be on its way just now.
    """
    for instance in places.instances():
        segments = LeftSegments(instance, places)
        folders = (places.heads(instance), places.home(instance))
        if places.stale(instance) and not owner_alive(folders[0]):
            continue
        position = segments.load()
        facts = spans = size = 0
        agent = ""
        while True:
            try:
                window = read_window(segments, position, 1 << 20)
            except FileNotFoundError:
                break  # delivered and deleted meanwhile
            if not (window.facts or window.spans or window.damage):
                break
            facts += window.facts
            spans += window.spans
            if window.end.segment == position.segment:
                size += window.end.offset - position.offset
            else:
                size += window.end.offset
            agent = str(window.resource.get("service.name", agent))
            position = window.end
        yield Pending(
            instance,
            any(owner_alive(folder) for folder in folders),
            owner_pid(folders[0]) or owner_pid(folders[1]),
            facts,
            spans,
            size,
            agent,
        )
