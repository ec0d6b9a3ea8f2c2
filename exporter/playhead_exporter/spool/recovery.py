"""Takes over the tapes of dead processes, and completes their files from their active segments."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from playhead_core.facts import Fact
from playhead_core.process.own_descriptors import open_own, read_file
from playhead_core.tape.frames import Scan, next_frame
from playhead_exporter.spool.folders import (
    SpoolFolders,
    make_folder,
    remove_folder,
    segment_name,
    segment_numbers,
)
from playhead_exporter.spool.owner import OwnerLock, owner_alive, owner_destination, owner_pid
from playhead_exporter.spool.segments import LeftSegments, Position, read_batch


class Left(msgspec.Struct):
    """The tape that a dead process left, owned by us while we hold its locks."""

    segments: LeftSegments
    _folders: list[Path]
    _locks: list[OwnerLock]

    def remove(self) -> None:
        """Delete the folders of the instance, after everything is delivered."""
        numbers = self.segments.numbers()
        if numbers:
            self.segments.delivered(Position(numbers[-1] + 1, 0))
        for folder in self._folders:
            remove_folder(folder)
        self.release()

    def release(self) -> None:
        """Release the locks, so that another process may take over."""
        self.segments.close()
        for lock in self._locks:
            lock.release()
        self._locks.clear()


def take_left(folders: SpoolFolders, instance: bytes) -> Left | None:
    """Take over the tape of ``instance``.

    None if its process lives, another process has taken it over, or it has another destination.

    Active segments whose spool was deleted are deleted. Otherwise the files on disk are first completed
    from the active segments, as far as the disk accepts it.
    """
    taken = [
        folder
        for folder in dict.fromkeys((folders.active_home(instance), folders.home(instance)))
        if folder.is_dir()
    ]
    if not folders.delivers(_destination(taken)):
        return None
    locks: list[OwnerLock] = []
    for folder in taken:
        lock = OwnerLock.take(folder)
        if lock is None:
            for held in locks:
                held.release()
            return None
        locks.append(lock)
    if not locks:
        return None
    if folders.stale(instance):
        Left(LeftSegments(instance, folders), taken, locks).remove()
        return None
    home = folders.home(instance)
    for folder in taken:
        for number in segment_numbers(folder, "head"):
            with contextlib.suppress(OSError):
                _complete(folder / segment_name(number, "head"), home, number)
    if home.is_dir() and home not in taken:
        taken.append(home)
    return Left(LeftSegments(instance, folders), taken, locks)


def _destination(taken: Iterable[Path]) -> str:
    return next((found for folder in taken if (found := owner_destination(folder))), "")


def _complete(active: Path, home: Path, number: int) -> None:
    """Copy the complete frames of ``active`` to its segment, then delete it. On OSError it stays."""
    data = read_file(active)
    scan = Scan(data)
    frames, end = sum(1 for _ in scan), scan.end
    if next_frame(data, scan.end) is not None:  # behind damage: delivery continues there
        frames, end = 2, len(data.rstrip(b"\0"))
    if frames > 1:
        make_folder(home)
        path = home / segment_name(number, "tape")
        with open_own(path, os.O_RDWR | os.O_CREAT) as file:
            done = os.fstat(file.number).st_size
            while done < end:
                done += os.pwrite(file.number, data[done:end], done)
    active.unlink()


def left_facts(folders: SpoolFolders, instance: bytes) -> Iterator[Fact]:
    """The facts of ``instance`` that are still in the spool, delivered ones included, in order.

    Has no side effects.
    """
    segments = LeftSegments(instance, folders)
    for number in segments.numbers():
        try:
            data = segments.data(number)
        except FileNotFoundError:
            return  # delivered and deleted meanwhile
        for _, record in Scan(data):
            if isinstance(record, Fact):
                yield record


class Pending(msgspec.Struct, frozen=True):
    """The undelivered part of one instance."""

    instance: bytes
    alive: bool
    pid: int | None
    facts: int
    spans: int
    logs: int
    bytes: int
    agent: str
    """``service.name`` of its resource."""
    destination: str
    """Where they go; empty if an earlier version left them."""

    @property
    def count(self) -> int:
        """Number of facts, spans and log records."""
        return self.facts + self.spans + self.logs


def pending(folders: SpoolFolders) -> Iterator[Pending]:
    """The undelivered part of each instance in this spool. Has no side effects.

    For a living process it is what its cursor says; some of it may be in delivery right now.
    """
    for instance in folders.instances():
        segments = LeftSegments(instance, folders)
        taken = (folders.active_home(instance), folders.home(instance))
        if folders.stale(instance) and not owner_alive(taken[0]):
            continue
        position = segments.load()
        facts = spans = logs = size = 0
        agent = ""
        while True:
            try:
                batch = read_batch(segments, position, 1 << 20)
            except FileNotFoundError:
                break  # delivered and deleted meanwhile
            if not (batch.count or batch.damage):
                break
            facts += batch.facts
            spans += batch.spans
            logs += batch.logs
            if batch.end.segment == position.segment:
                size += batch.end.offset - position.offset
            else:
                size += batch.end.offset
            agent = str(batch.resource.get("service.name", agent))
            position = batch.end
        yield Pending(
            instance,
            any(owner_alive(folder) for folder in taken),
            owner_pid(taken[0]) or owner_pid(taken[1]),
            facts,
            spans,
            logs,
            size,
            agent,
            _destination(taken),
        )
