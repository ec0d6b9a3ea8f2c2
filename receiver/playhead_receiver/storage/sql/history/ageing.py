"""Lets a service's own run age out: a bounded piece of it at a time, off the acknowledgement path.

New facts are measured once: they are decoded, and separated from those of requests. Facts that exceed
the age or size to keep are read again. What to drop is decided outside the writer; the writer drops it
only if it is unchanged. Facts that stayed because something needed them, and those that deleted
requests have left, are checked again every ten minutes. No state is stored: all of this starts again
when the store is opened.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from playhead_core.facts import Fact
from playhead_core.tape.folds import is_inbound
from playhead_receiver.storage.api.retention import History
from playhead_receiver.storage.runs.request_index import UNKNOWN, UNNOTED
from playhead_receiver.storage.sql.history.dropping import Dropped, drop
from playhead_receiver.storage.sql.history.measuring import Process
from playhead_receiver.storage.sql.history.selecting import FactFrame, Owners, decide, read_frame
from playhead_receiver.storage.sql.reading.part_of_tape import RequestIndex
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.writing.prepare import offloaded_at

FRAMES_AT_ONCE = 32
AT_ONCE_BYTES = 4 << 20
"""Most compressed bytes that are read and written together, unless a single frame is larger."""
LOOKS_EVERY_S = 600.0
DEAD_S = 86_400.0
"""A process that was silent for this many seconds is forgotten: its last facts stay as they are."""

_encode = msgspec.msgpack.Encoder().encode

Run = Callable[[Callable[[Db], Dropped]], Dropped]


class HistoryAgeing:
    """Ages out the histories of the service processes of a store. Used by one thread."""

    def __init__(self, reader: SqlReader) -> None:
        self._reader = reader
        self._processes: dict[int, Process | None] = {}
        """By row; None: a process that does not age out, because its request index is incomplete."""
        self._measured_to = 0
        self._due: deque[tuple[Process, int]] = deque()
        """Frames that are due for a decision, by their first number."""
        self._next_look_s = 0.0

    def step(self, kept: History, run: Run) -> tuple[int, Dropped]:
        """Do some of the work; return how many frames were read (0: all is done), and what was dropped.

        ``run`` executes a function in the writer's transaction.
        """
        done = Dropped(blobs=set(), left=[])
        read, behind = self._measure(kept)
        if behind:  # facts not measured yet may extend what would be dropped
            return read, done
        if not self._due:
            self._collect(kept)
        some = self._some_due()
        if some is None:
            return read, done
        process, frames = some
        if frames:
            decide(self._reader, process, frames)
            measured_to = self._measured_to
            done = run(lambda db: drop(db, process.row, frames, measured_to))
            process.waiting.update(done.left)
        return max(1, read + len(frames)), done

    # Measuring

    def _measure(self, kept: History) -> tuple[int, bool]:
        """Measure some of the new facts; return how many frames, and whether there are more."""
        top = self._reader.position()
        if top <= self._measured_to:
            return 0, False
        (rows, more), now_ns = self._new_frames(top), time.time_ns()
        by_process: dict[int, list[FactFrame]] = {}
        for instance, *row in rows:
            frame = read_frame(row)
            if frame is not None and frame.facts:
                by_process.setdefault(instance, []).append(frame)
        for row, frames in by_process.items():
            process = self._process(row)
            if process is None:
                continue
            owners = Owners(self._reader, process, (one for some in frames for one in some.facts))
            for frame in frames:
                own = [fact for fact in frame.facts if owners.is_own(fact)]
                process.add(frame.facts, _stored_bytes(frame, own), now_ns, kept)
        self._measured_to = rows[-1][1] if more else top
        return len(rows), more

    def _new_frames(self, top: int) -> tuple[list[tuple[Any, ...]], bool]:
        """The next frames of service processes, and whether there may be more."""
        sizes = self._reader.all(
            "SELECT position, length(data) FROM fact_run WHERE position > ?"
            " AND position <= ? AND EXISTS (SELECT 1 FROM strand"
            " WHERE strand.instance = fact_run.instance) ORDER BY position LIMIT ?",
            (self._measured_to, top, FRAMES_AT_ONCE),
        )
        some = _within(sizes)
        if not some:
            return [], False
        marks = ", ".join("?" * len(some))
        rows = self._reader.all(
            "SELECT instance, position, first, last, data, blobs FROM fact_run"
            f" WHERE position IN ({marks}) ORDER BY position",
            some,
        )
        return rows, len(some) < len(sizes) or len(sizes) == FRAMES_AT_ONCE

    def _process(self, row: int) -> Process | None:
        if row not in self._processes:
            self._processes[row] = self._recall(row)
        return self._processes[row]

    def _recall(self, row: int) -> Process | None:
        entries = RequestIndex(self._reader, row)
        first = entries.first_request()
        found = self._reader.one("SELECT instance, trace_id FROM instance WHERE id = ?", (row,))
        if first is None or found is None or entries.frames([UNKNOWN, UNNOTED]):
            return None
        for frame in self._read(row, [first]):
            for fact in frame.facts:
                if is_inbound(fact):
                    return Process(row, found[0], found[1], fact.seq)
        return None

    # Collecting

    def _collect(self, kept: History) -> None:
        """Queue frames that exceed the limits; at intervals also frames that may age out by now."""
        looks = time.monotonic() >= self._next_look_s
        if looks:
            self._next_look_s = time.monotonic() + LOOKS_EVERY_S
            self._forget_dead()
        for process in self._processes.values():
            if process is None:
                continue
            for chunk in process.over(kept):
                rows = self._reader.all(
                    "SELECT first FROM fact_run WHERE instance = ? AND first >= ? AND first <= ?"
                    " ORDER BY first DESC",
                    (process.row, chunk.first, chunk.last),
                )
                self._due.extend((process, first) for (first,) in rows)
            if looks:
                again = process.waiting | self._left_of_deleted(process)
                process.waiting = set()
                self._due.extend((process, first) for first in sorted(again, reverse=True))

    def _forget_dead(self) -> None:
        before_ns = time.time_ns() - DEAD_S * 1e9
        for row, process in list(self._processes.items()):
            if process is None or process.heard_ns < before_ns:
                del self._processes[row]  # it is read again if it reports again

    def _left_of_deleted(self, process: Process) -> set[int]:
        """First numbers of frames that contain facts of deleted requests."""
        entries = RequestIndex(self._reader, process.row)
        found: set[int] = set()
        for trace_id in entries.left_of_deleted():
            found.update(entries.frames([trace_id, *entries.below(trace_id)]))
        return found

    def _some_due(self) -> tuple[Process, list[FactFrame]] | None:
        """The next due frames of one process, the newest first; None if nothing is due."""
        if not self._due:
            return None
        process = self._due[0][0]
        firsts: list[int] = []
        for owner, first in islice(self._due, FRAMES_AT_ONCE):
            if owner is not process:
                break
            firsts.append(first)
        marks = ", ".join("?" * len(firsts))
        sizes = dict(
            self._reader.all(
                f"SELECT first, length(data) FROM fact_run WHERE instance = ? AND first IN ({marks})",
                (process.row, *firsts),
            )
        )
        some = _within([(first, sizes.get(first, 0)) for first in firsts])
        for _ in some:
            self._due.popleft()
        return process, sorted(self._read(process.row, some), key=lambda frame: -frame.first)

    def _read(self, row: int, firsts: Sequence[int]) -> Iterator[FactFrame]:
        marks = ", ".join("?" * len(firsts))
        rows = self._reader.all(
            "SELECT position, first, last, data, blobs FROM fact_run"
            f" WHERE instance = ? AND first IN ({marks})",
            (row, *firsts),
        )
        for found in rows:
            frame = read_frame(found)
            if frame is not None and frame.facts:
                yield frame


def _stored_bytes(frame: FactFrame, own: Sequence[Fact]) -> int:
    """Stored bytes of some facts of a frame: their share of its bytes, and their blobs."""
    if not own:
        return 0
    share = len(_encode(own)) / max(1, len(_encode(frame.facts)))
    elsewhere = offloaded_at(frame.blobs)
    blobs = sum(fact.body.size for fact in own if fact.seq in elsewhere and fact.body is not None)
    return max(1, round(len(frame.data) * share)) + blobs


def _within(sizes: Sequence[tuple[Any, ...]]) -> list[int]:
    """The first keys of (key, size) pairs that fit into `AT_ONCE_BYTES`; at least one."""
    some: list[int] = []
    taken = 0
    for one, size in sizes:
        taken += size
        if some and taken > AT_ONCE_BYTES:
            break
        some.append(one)
    return some
