"""Reads a store's tables: the queries, on connections that an engine provides."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from typing import Any

from playhead_core.errors import CorruptTape, MalformedOtlp, StoreError, StoreUnavailable
from playhead_core.otlp.log_records import LogQuery
from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.content.texts import Texts
from playhead_receiver.storage.runs.summary_fold import InstanceRow
from playhead_receiver.storage.spans.span_view import LONGEST_WORD, name_in, open_frame, parse_span
from playhead_receiver.storage.sql.reading.summaries import among, instance_of, label_of
from playhead_receiver.storage.sql.tables.database import Db, ManyRows, Row
from playhead_receiver.storage.sql.tables.frames import frames_at, frames_of
from playhead_receiver.storage.values.stored import Change, StoredLog, StoredSpan, StoreVersion
from playhead_receiver.storage.writing.prepare import open_run

CHANGES_BYTES = 16 * 1024 * 1024
"""About how many bytes one call of `changes` brings into memory."""

SPANS_AT_ONCE = 512
"""Rows of a trace that are read at a time."""
LOGS_AT_ONCE = 512
BUNDLES_AT_ONCE = 32
"""Most frames of a trace that are read at a time; fewer if they are large."""
LARGE_BYTES = 1024 * 1024
"""If the frames of one read had more bytes, the next read fetches a single frame."""


_STAMP = (
    "SELECT count(*), max(position), sum(label), sum(input + output) FROM span WHERE trace_id = ?",
    "SELECT count(*), sum(seq) FROM pending WHERE trace_id = ?",
    "SELECT count(*), max(bundle) FROM log WHERE trace_id = ?",
    "SELECT count(*), sum(last - first + 1) FROM fact_range WHERE instance IN"
    " (SELECT instance FROM run_instance WHERE trace_id = ?)",
    # A link is added when facts arrive, age out or are emptied.
    "SELECT count(*) FROM link WHERE instance IN (SELECT instance FROM run_instance WHERE trace_id = ?)",
)
"""What changes with the spans, log records and facts of a trace, and with what is derived from them."""
_POSITIONS = ManyRows("position:int", "span WHERE trace_id = ?")
_NAMED = ManyRows("span_id:bytes bundle:int place:int", "span WHERE trace_id = ?")
_VERSION = "SELECT position, bundle, (SELECT coalesce(max(number), -1) FROM tombstone) FROM counter"


@lru_cache(maxsize=SPANS_AT_ONCE)
def _placed(count: int) -> ManyRows:
    return ManyRows(
        "position:int span_id:bytes bundle:int place:int resource:int label:int",
        f"span WHERE position IN ({', '.join('?' * count)})",
    )


class _Shared:
    """What many spans have in common, by row."""

    def __init__(self) -> None:
        self.resources: dict[int, bytes] = {}
        self.wires: dict[int, str] = {}

    def read(self, db: Db, rows: Sequence[Row]) -> None:
        """Read what these spans have and earlier ones had not."""
        resources = {row[4] for row in rows} - self.resources.keys()
        self.resources.update(among(db, "SELECT id, data FROM resource WHERE id IN", resources))
        labels = {row[5] for row in rows} - self.wires.keys()
        for label, data in among(db, "SELECT id, data FROM label WHERE id IN", labels):
            self.wires[label] = label_of(data).wire


class SqlReader:
    """Answers queries from any thread. Each query takes a connection while it lasts."""

    def __init__(self, blobs: Blobs) -> None:
        self.blobs = blobs

    def connection(self) -> AbstractContextManager[Db]:
        """A connection whose reads in the ``with`` block all see one snapshot of the store."""
        raise NotImplementedError

    def single(self) -> AbstractContextManager[Db]:
        """As `connection`, for a single statement."""
        return self.connection()

    def stream(self) -> AbstractContextManager[Db]:
        """As `connection`, for reads whose rows should not all be in memory at once."""
        return self.connection()

    def one(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row, None if there is none."""
        with self.connection() as db:
            return next(iter(db.execute(sql, values)), None)

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows."""
        with self.connection() as db:
            return list(db.execute(sql, values))

    # Instances

    def instance_id(self, instance: bytes) -> int | None:
        """The row id of a process instance; None if it is unknown."""
        found = self.one("SELECT id FROM instance WHERE instance = ?", (instance,))
        return None if found is None else found[0]

    def instance_row(self, row: int) -> InstanceRow:
        """What summaries need about a process instance."""
        with self.connection() as db:
            return instance_of(db, row)

    # Spans

    def spans(self, trace_id: bytes, only: Collection[bytes] | None = None) -> Iterator[StoredSpan]:
        """Finished spans of a trace in order of arrival."""
        # Positions are in the index, so the first spans of a long trace need not wait for all rows.
        rows = self._rows(_POSITIONS, trace_id, only)
        places = sorted(row[0] for row in rows)
        ahead = deque[int]()
        texts = self.texts(ahead)
        about = _Shared()
        for at in range(0, len(places), SPANS_AT_ONCE):
            some = places[at : at + SPANS_AT_ONCE]
            with self.connection() as db:
                rows = sorted(db.rows(_placed(len(some)), some))
                about.read(db, rows)
            ahead.extend(sorted({row[2] for row in rows}))
            for _, span_id, bundle, place, resource, label in rows:
                if resource in about.resources and label in about.wires:
                    otlp = about.resources[resource] + texts.span(bundle, place)
                    yield StoredSpan(trace_id, span_id, otlp, about.wires[label])

    def _rows(self, wanted: ManyRows, trace_id: bytes, only: Collection[bytes] | None) -> list[Row]:
        """Rows of the spans of a trace; with ``only``, of those."""
        with self.connection() as db:
            if only is None:
                return db.rows(wanted, (trace_id,))
            sql = f"{wanted.sql} AND span_id = ?"
            return [row for span_id in only for row in db.execute(sql, (trace_id, span_id))]

    def names(self, trace_id: bytes, only: Collection[bytes] | None = None) -> dict[bytes, str]:
        """Names of finished spans by span id. A span that is damaged has none; `verify` reports it."""
        rows = self._rows(_NAMED, trace_id, only)
        rows.sort(key=lambda row: row[1:])
        ahead = deque(dict.fromkeys(row[1] for row in rows))
        texts = self.texts(ahead)
        found: dict[bytes, str] = {}
        for span_id, bundle, place in rows:
            with suppress(StoreError, CorruptTape, MalformedOtlp):
                name = name_in(texts.head(bundle, place))
                if name is None:
                    name = parse_span(open_frame(texts.span(bundle, place))[1]).name
                found[span_id] = name[:LONGEST_WORD]
        return found

    def stamp(self, trace_id: bytes) -> tuple[Any, ...]:
        """Differs when what is stored of a trace differs, or means something else."""
        with self.connection() as db:
            return tuple(db.execute(sql, (trace_id,)).get for sql in _STAMP)

    def version(self) -> StoreVersion:
        """The version of everything that is stored."""
        found = self.one(_VERSION)
        return StoreVersion(*found) if found is not None else StoreVersion(0, 0, -1)

    def resources(self) -> list[bytes]:
        """The resources of stored spans."""
        return [data for (data,) in self.all("SELECT data FROM resource WHERE uses > 0")]

    def texts(self, ahead: deque[int] | None = None) -> Texts:
        """A reader of spans and texts, for one thread.

        ``ahead``: bundles that will be requested, ascending; several of them are fetched together.
        """
        waiting = deque[int]() if ahead is None else ahead
        most = BUNDLES_AT_ONCE // 4

        def fetch(bundle: int) -> dict[int, bytes]:
            nonlocal most
            some = [bundle]
            while waiting and len(some) < most:
                one = waiting.popleft()
                if one > bundle:
                    some.append(one)
            try:
                found = self._frames(some)
            except CorruptTape:  # perhaps another frame is damaged, not this one
                found = self._frames([bundle])
            large = sum(map(len, found.values())) > LARGE_BYTES
            most = 1 if large else min(max(2 * most, 2), BUNDLES_AT_ONCE)
            return found

        return Texts(fetch)

    def _frames(self, bundles: list[int]) -> dict[int, bytes]:
        if len(bundles) == 1:
            with self.single() as db:
                return frames_at(db, bundles[0])
        with self.connection() as db:
            return frames_of(db, bundles)

    def pending(self, trace_id: bytes) -> list[tuple[bytes, int, bytes]]:
        """For each span that has not arrived: instance and number of its start fact, and its span id."""
        rows = self.all(
            "SELECT instance.instance, seq, pending.span_id FROM pending"
            " JOIN instance ON instance.id = pending.instance"
            " WHERE pending.trace_id = ? ORDER BY start_ns, seq",
            (trace_id,),
        )
        return [(instance, seq, span_id) for instance, seq, span_id in rows]

    # Log records

    def logs(self, trace_id: bytes, wanted: LogQuery) -> Iterator[StoredLog]:
        """Log records of a trace by time, without damaged ones, which `verify` reports."""
        conditions = ["trace_id = ?", "level >= ?"]
        values: list[Any] = [trace_id, wanted.level]
        if wanted.content:
            conditions.append("content")
        spans = None if wanted.span_ids is None else frozenset(wanted.span_ids)
        if spans is not None and len(spans) <= SPANS_AT_ONCE:
            conditions.append(f"span_id IN ({', '.join('?' * len(spans))})" if spans else "1 = 0")
            values += spans
        sql = (
            "SELECT time_ns, digest, span_id, level, bundle, place, resource.data FROM log"
            f" JOIN resource ON resource.id = log.resource WHERE {' AND '.join(conditions)}"
            f" AND (time_ns, digest) > (?, ?) ORDER BY time_ns, digest LIMIT {LOGS_AT_ONCE}"
        )
        after = wanted.after
        ahead = deque[int]()
        texts = self.texts(ahead)
        while rows := self.all(sql, (*values, *after)):
            ahead.clear()
            ahead.extend(sorted({row[4] for row in rows}))
            for time_ns, digest, span_id, level, bundle, place, resource in rows:
                if spans is not None and span_id not in spans:
                    continue
                with suppress(StoreError, CorruptTape):
                    otlp = resource + texts.span(bundle, place)
                    yield StoredLog(trace_id, span_id, time_ns, level, digest, otlp)
            after = rows[-1][0], rows[-1][1]

    # Changes

    def position(self) -> int:
        """Position of the last change."""
        found = self.one("SELECT position FROM counter")
        return 0 if found is None else found[0]

    def changes(self, after: int, limit: int) -> list[Change]:
        """What was committed after a position: at most ``limit`` items, and about `CHANGES_BYTES`.

        Damaged items are skipped; `verify` reports them.
        """
        while True:
            changes, read_to = self._changes(after, limit)
            if changes or read_to == after:
                return changes
            after = read_to

    def _changes(self, after: int, limit: int) -> tuple[list[Change], int]:
        """Some of these changes, and the position up to which they are complete."""
        changes: list[Change] = []
        size, damaged, read_to = 0, 0, after
        with self.stream() as db:
            runs: Iterator[Any] = iter(
                db.execute(
                    "SELECT position, last, data, blobs FROM fact_run WHERE position > ?"
                    " ORDER BY position LIMIT ?",
                    (after, limit),
                )
            )
            spans: Iterator[Any] = iter(
                db.execute(
                    "SELECT position, trace_id, span_id, bundle, place, resource.data, label.data"
                    " FROM span JOIN resource ON resource.id = span.resource"
                    " JOIN label ON label.id = span.label WHERE position > ? ORDER BY position LIMIT ?",
                    (after, limit),
                )
            )
            texts = Texts(lambda id: frames_at(db, id))
            for is_run, row in _by_position(runs, spans):
                if len(changes) + damaged >= limit or size >= CHANGES_BYTES:
                    break
                read_to = row[0]
                try:
                    if is_run:
                        position, last, data, blobs = row
                        for fact in open_run(data, blobs, self.blobs):
                            place = position - last + fact.seq
                            if place > after:
                                changes.append(Change(place, fact))
                                size += len(fact.body.inline or b"") if fact.body is not None else 100
                    else:
                        position, trace_id, span_id, bundle, place, resource, label = row
                        otlp = resource + texts.span(bundle, place)
                        span = StoredSpan(trace_id, span_id, otlp, label_of(label).wire)
                        changes.append(Change(position, span))
                        size += len(otlp)
                except StoreUnavailable:
                    raise
                except (CorruptTape, StoreError):
                    damaged += 1
        return changes[:limit], read_to


def _by_position(runs: Iterator[Any], spans: Iterator[Any]) -> Iterator[tuple[bool, Any]]:
    """Merge two iterators that are sorted by position; True marks items of ``runs``."""
    run, span = next(runs, None), next(spans, None)
    while run is not None or span is not None:
        if span is None or (run is not None and run[0] < span[0]):
            yield True, run
            run = next(runs, None)
        else:
            yield False, span
            span = next(spans, None)
