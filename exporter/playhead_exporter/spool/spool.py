"""The spool of this process: the sink for facts, spans and log records. It never blocks the agent."""

from __future__ import annotations

import itertools
import os
import time
import weakref
import zlib
from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

from playhead_core.facts import Fact
from playhead_core.process.interpreter_threads import get_ident, make_lock
from playhead_core.tape.frames import (
    HEAD,
    MAX_PAYLOAD_BYTES,
    Header,
    LogEntry,
    Record,
    SpanRecord,
    encode,
)
from playhead_core.tape.plain_facts import UNENCODABLE, plain
from playhead_exporter.spool.active_segment import NO_THREADS, ActiveSegment, BackgroundThreads
from playhead_exporter.spool.blobs import BLOB_BYTES, split
from playhead_exporter.spool.folders import (
    SpoolFolders,
    remove_file,
    segment_name,
)
from playhead_exporter.spool.owner import OwnedFolders
from playhead_semconv import attributes as a
from playhead_semconv import events as e

SEGMENT_BYTES = 1 << 20
"""Size of an active segment, unless one frame needs more."""
PATIENCE_S = 1.0
"""Seconds that an append waits for a working disk if facts come faster than it takes them."""
GAP_ROOM_BYTES = 1024
"""An upper bound for the frame of a gap fact."""

_FRAME_HEAD_BYTES = HEAD.size
_encode = msgspec.msgpack.Encoder().encode
_number = msgspec.structs.force_setattr


class Spool:
    """Writes the tape of this process instance into active segments, for the copier and the shipper.

    It is a `playhead_core.tape.protocols.Sink`. `append` copies into a mapped file under a lock that
    is held for such copies only. An append from a finalizer or signal handler that interrupts another
    append of the same thread is written at the end of that one. After ``os.fork`` the child is a new
    instance with files of its own.
    """

    def __init__(
        self,
        folders: SpoolFolders,
        resource: Mapping[str, Any],
        *,
        memory_bytes: int,
        threads: BackgroundThreads = NO_THREADS,
    ) -> None:
        """``memory_bytes``: limit for all active segments. Creates no file before the first append."""
        self.folders = folders
        self._resource = dict(resource)
        self._memory_bytes = memory_bytes
        self._segment_bytes = max(16384, min(SEGMENT_BYTES, memory_bytes // 4))
        self._threads = threads
        self._after_append = threads.after_append
        self._begin()
        me = weakref.ref(self)

        def in_child() -> None:
            spool = me()
            if spool is not None:
                spool._after_fork()

        os.register_at_fork(after_in_child=in_child)

    def _begin(self) -> None:
        self.instance: bytes = os.urandom(16)
        self.active_segments: dict[int, ActiveSegment] = {}
        """Active segments that are still in memory, by number."""
        self.segments: set[int] = set()
        """Numbers of the undelivered segments, including the one being written."""
        self.is_idle = False
        """Set by background threads that sleep until the next append."""
        self._lock = make_lock()
        self._writer = 0
        self._deferred: deque[Record] = deque()
        self.count = 0
        """How many numbers were assigned."""
        self.current: ActiveSegment | None = None
        """The active segment that is being written."""
        self._prepared: ActiveSegment | None = None
        self._begun = False
        self._numbers = itertools.count(1)
        self.owned = OwnedFolders(self.folders.destination)
        """Folders with files of this instance."""
        self._lost: tuple[int, int] | None = None
        self.lost_facts = 0
        self.lost_spans = 0
        self.lost_logs = 0
        self.why_lost = ""
        """The reason of the last loss."""

    def _after_fork(self) -> None:
        self.owned.forget_after_fork()
        self._begin()

    # The caller's path

    def append(self, fact: Fact) -> int:
        """Number and store ``fact``; returns its number. Never raises or waits for a stalled disk."""
        body = fact.body
        if body is not None and body.inline is not None and len(body.inline) > BLOB_BYTES:
            *blobs, fact = split(fact, body, body.inline)
            for blob in blobs:
                self.append(blob)
        me = get_ident()
        if self._writer == me:
            seq = self._assign_number(fact)
            self._deferred.append(fact)
            return seq
        seq = -1
        kept = False
        with self._lock:
            try:
                self._writer = me
                seq = self.count  # not `_assign_number`: an interrupt in it would leave a number unused
                self.count = seq + 1
                _number(fact, "instance", self.instance)
                _number(fact, "seq", seq)
                kept = self._keep(fact)
                if self._deferred:
                    self._drain()
            except BaseException as problem:
                self._interrupted(fact, seq, kept, problem)
            finally:
                self._writer = 0
        if self._deferred:
            self.settle()
        if self.is_idle:
            self._wake_threads()
        if self._after_append is not None and self.current is not None:
            self._after_append(self.current, self.current.written)
        return seq

    def append_span(self, span: SpanRecord) -> None:
        """Store a finished span, in order with the facts. Never raises."""
        self._append_unnumbered(span)

    def append_log(self, entry: LogEntry) -> None:
        """Store a log record, in order with the facts. Never raises."""
        self._append_unnumbered(entry)

    def _append_unnumbered(self, record: SpanRecord | LogEntry) -> None:
        if self._writer == get_ident():
            self._deferred.append(record)
            return
        kept = False
        with self._lock:
            try:
                self._writer = get_ident()
                kept = self._keep(record)
                if self._deferred:
                    self._drain()
            except BaseException as problem:
                self._interrupted(record, -1, kept, problem)
            finally:
                self._writer = 0
        if self._deferred:
            self.settle()
        if self.is_idle:
            self._wake_threads()

    def _wake_threads(self) -> None:
        self.is_idle = False
        self._threads.news()

    def _assign_number(self, fact: Fact) -> int:
        seq = self.count
        self.count = seq + 1
        _number(fact, "instance", self.instance)
        _number(fact, "seq", seq)
        return seq

    def _keep(self, record: Record) -> bool:
        try:
            payload = _encode(record)
        except UNENCODABLE:
            if not isinstance(record, Fact):
                raise
            payload = _encode(plain(record))
        size = len(payload) + _FRAME_HEAD_BYTES
        active = self.current
        if active is None or active.written + size > active.size or self._lost is not None:
            active = self._room(size)
            if active is None:
                self._lose(record, self._threads.disk_stalled() or "more facts than memory takes")
                return False
        _write_frame(active, payload)
        return True

    def _interrupted(self, record: Record, seq: int, kept: bool, problem: BaseException) -> None:
        """Handle an exception inside an append: Ctrl-C, or an unexpected error."""
        if isinstance(problem, Exception):
            self._lose(record, f"{type(problem).__qualname__}: {problem}")
            return
        if not kept and (seq >= 0 or not isinstance(record, Fact)):
            if isinstance(record, Fact):
                _number(record, "instance", self.instance)
                _number(record, "seq", seq)
            self._keep(record)
        raise problem

    def _drain(self) -> None:
        while self._deferred:
            record = self._deferred.popleft()
            try:
                self._keep(record)
            except Exception as problem:  # contract of a sink: what cannot be stored becomes a gap
                self._lose(record, f"{type(problem).__qualname__}: {problem}")

    # Room for frames: called with the lock

    def _room(self, size: int) -> ActiveSegment | None:
        """Return an active segment with room for ``size`` bytes: the current one, or a new one."""
        if self._lost is not None:
            size += GAP_ROOM_BYTES
        active = self.current
        if active is None or active.written + size > active.size:
            active = self._another(size)
            if active is None:
                return None
        if self._lost is not None:
            self._declare_gap(active)
        return active

    def _another(self, size: int) -> ActiveSegment | None:
        if not self._begun:
            self._begun = True
            self._threads.begin()
        before = self.current
        active, self._prepared = self._prepared, None
        if active is not None and (
            active.written + size > active.size or (before is not None and active.number < before.number)
        ):
            active.remove()
            active = None
        if active is None:
            active = self._make(size)
        if active is None and self._lost is None:
            active = self._make_when_copied(size)
        if active is None:
            return None
        self.segments.add(active.number)
        self.active_segments[active.number] = active
        self.current = active
        if before is not None:
            before.rolled = True
            self._threads.wake_copier()
        return active

    def _make_when_copied(self, size: int) -> ActiveSegment | None:
        """The memory budget is used up: wait for the copier, unless the disk stalls."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._threads.disk_stalled() and time.monotonic() < deadline:
            if not self._threads.await_room(0.005):
                return None
            active = self._make(size)
            if active is not None:
                return active
        return None

    def _make(self, size: int) -> ActiveSegment | None:
        if size > MAX_PAYLOAD_BYTES:
            self.why_lost = f"a single record of {size} bytes"
            return None
        header = encode(Header(self.instance, time.time_ns(), resource=self._resource))
        wanted = max(self._segment_bytes, size + len(header) + 64)
        prepared = self._prepared
        taken = sum(active.size for active in list(self.active_segments.values()))
        taken += prepared.size if prepared is not None else 0
        if self.active_segments and taken + wanted > self._memory_bytes:
            return None
        active, home = self.folders.active_home(self.instance), self.folders.home(self.instance)
        for folder in dict.fromkeys((active, home)):
            if folder == home and self._threads.disk_stalled():
                continue
            try:
                self.owned.take(folder)
                return ActiveSegment(folder, next(self._numbers), wanted, header)
            except OSError as problem:
                self.why_lost = str(problem)
        return None

    def _lose(self, record: Record, why: str) -> None:
        self.why_lost = why
        if isinstance(record, Fact):
            first, last = self._lost or (record.seq, record.seq)
            self._lost = (min(first, record.seq), max(last, record.seq))
            self.lost_facts += 1
        elif isinstance(record, LogEntry):
            self.lost_logs += 1
        else:
            self.lost_spans += 1

    def _declare_gap(self, active: ActiveSegment) -> None:
        if self._lost is None:
            return
        first, last = self._lost
        gap = Fact(
            time.time_ns(),
            0,
            e.PLAYHEAD_GAP,
            attributes={
                a.PLAYHEAD_GAP_FIRST: first,
                a.PLAYHEAD_GAP_LAST: last,
                a.PLAYHEAD_GAP_REASON: self.why_lost[:256],
            },
        )
        self._assign_number(gap)
        _write_frame(active, _encode(gap))
        self._lost = None

    # For the background threads

    def settle(self) -> None:
        """Write deferred records and an undeclared gap, as far as there is room."""
        with self._lock:
            try:
                self._writer = get_ident()
                self._drain()
                if self._lost is not None:
                    self._room(0)
            finally:
                self._writer = 0

    def settle_if_free(self) -> None:
        """`settle`, unless an append is in progress, which may be waiting for the calling thread."""
        if not self._lock.locked() and (self._deferred or self._lost is not None):
            self.settle()

    def settled(self) -> bool:
        """Whether there is nothing to `settle`."""
        return not self._deferred and self._lost is None

    def prepare(self) -> None:
        """Create the next active segment in advance, so that no append has to. Called by the copier."""
        active = self.current
        if active is None or self._prepared is not None:
            return
        if active.number == 1 and active.written < active.size // 8:
            return  # the process may not need another active segment
        self._prepared = self._make(0)

    @property
    def losses(self) -> str:
        """How much was lost so far; empty if nothing was."""
        counts = {"facts": self.lost_facts, "spans": self.lost_spans, "log records": self.lost_logs}
        return ", ".join(f"{number} {what}" for what, number in counts.items() if number)

    def retire(self) -> tuple[int, int] | None:
        """The background threads end: let the next append begin a new active segment.

        Returns number and end of the active segment that was being written; None if there was none.
        """
        with self._lock:
            active = self.current
            if self.current is not None:
                self.current.rolled = True
                self.current = None
            if self._prepared is not None:
                self._prepared.remove()
                self._prepared = None
        return None if active is None else (active.number, active.written)

    def unlock(self) -> None:
        """Release the locks so that another process may deliver; a later append is a new instance."""
        self.owned.release()
        self._begin()

    def clear(self) -> None:
        """Delete all files of this instance after complete delivery, and release its folders.

        A later append takes them again.
        """
        for number in list(self.active_segments):
            self.active_segments.pop(number).remove()
        home = self.folders.home(self.instance)
        for number in list(self.segments):
            remove_file(home / segment_name(number, "tape"))
            self.segments.discard(number)
        self.owned.remove()


def _write_frame(active: ActiveSegment, payload: bytes) -> None:
    """Write one frame that fits, with the lock: a copy without a system call.

    Length and checksum follow the payload, so that a partial frame is never taken for a whole one.
    """
    start = active.written
    data = start + _FRAME_HEAD_BYTES
    active.map[data : data + len(payload)] = payload
    HEAD.pack_into(active.map, start, len(payload), zlib.crc32(payload))
    active.written = data + len(payload)
