"""Reads of the SQLite store: a pool of connections, and the queries."""

from __future__ import annotations

import queue
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from playhead_checkpoint import BlobFolder
from playhead_receiver.store.fold import InstanceRow, RunRow, SpanRow, fold_run
from playhead_receiver.store.listing import asks_for, order_of, place_after
from playhead_receiver.store.prepare import open_run
from playhead_receiver.store.protocol import Change, Query, RunSummary, StoredSpan
from playhead_receiver.store.sqlite.schema import open_reader, speaking_of
from playhead_receiver.store.texts import Texts
from playhead_semconv.errors import StoreUnavailable

CHANGES_BYTES = 16 * 1024 * 1024
"""About how much one call of `changes` brings into memory."""

_RUN = "SELECT trace_id, name, agent, mode, origin, started_ns, arrived_ns FROM run"


class Reader:
    """Answers queries from any thread; each takes a connection for as long as one query lasts."""

    def __init__(self, path: Path, blobs: BlobFolder) -> None:
        self.blobs = blobs
        self._path = path
        self._idle: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        self._closed = False

    def close(self) -> None:
        """Close what is idle now, and the rest when it is given back. Idempotent."""
        self._closed = True
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    @contextmanager
    def connection(self) -> Generator[apsw.Connection]:
        """A connection whose reads in the ``with`` block all see one state of the store."""
        if self._closed:
            raise StoreUnavailable(f"the store {self._path} is closed")
        with speaking_of(self._path):
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                connection = open_reader(self._path)
            try:
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("COMMIT")
            finally:
                if self._closed or connection.filename == "":
                    connection.close()
                else:
                    self._idle.put(connection)

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
        """The row of a process instance."""
        found = self.one("SELECT id FROM instance WHERE instance = ?", (instance,))
        return None if found is None else found[0]

    def instance_row(self, row: int) -> InstanceRow:
        """What the fold needs of an instance."""
        with self.connection() as db:
            return _instance(db, row)

    # Spans

    def spans(self, trace_id: bytes) -> Iterator[StoredSpan]:
        """Finished spans of a trace in order of arrival."""
        rows = self.all(
            "SELECT span_id, bundle, place, resource.data FROM span JOIN resource"
            " ON resource.id = span.resource WHERE trace_id = ? ORDER BY position",
            (trace_id,),
        )
        texts = self.texts()
        for span_id, bundle, place, resource in rows:
            yield StoredSpan(trace_id, span_id, resource + texts.span(bundle, place))

    def texts(self) -> Texts:
        """Puts spans together; for one thread."""

        def fetch(bundle: int) -> bytes | None:
            found = self.one("SELECT data FROM bundle WHERE id = ?", (bundle,))
            return None if found is None else found[0]

        return Texts(fetch)

    def pending(self, trace_id: bytes) -> list[tuple[bytes, int]]:
        """Instance and number of the start facts of spans that have not come."""
        rows = self.all(
            "SELECT instance.instance, seq FROM pending JOIN instance ON instance.id = pending.instance"
            " WHERE pending.trace_id = ? ORDER BY start_ns, seq",
            (trace_id,),
        )
        return [(instance, seq) for instance, seq in rows]

    # Runs

    def runs(self, query: Query) -> Iterator[RunSummary]:
        """Summaries, in the order that the query wants."""
        after = place_after(query)
        rows = [RunRow(*row) for row in self.all(f"{_RUN} ORDER BY started_ns DESC, trace_id")]
        runs: Iterator[RunSummary] = map(self._fold, rows)
        if query.sort != "started" or query.ascending:
            runs = iter(sorted(runs, key=lambda run: order_of(run, query)))
        wanted = (run for run in runs if asks_for(query, run))
        if after is not None:
            measure, trace_id = after
            place = (measure if query.ascending else -measure), trace_id
            wanted = (run for run in wanted if order_of(run, query) > place)
        return islice(wanted, query.limit)

    def run_named(self, name: str) -> RunSummary | None:
        """The run of exactly this name."""
        found = self.one(f"{_RUN} WHERE name = ?", (name,))
        return None if found is None else self._fold(RunRow(*found))

    def runs_from(self, low: bytes, high: bytes, limit: int) -> list[RunSummary]:
        """Runs whose trace id lies between, both included."""
        rows = self.all(
            f"{_RUN} WHERE trace_id BETWEEN ? AND ? ORDER BY trace_id LIMIT ?", (low, high, limit)
        )
        return [self._fold(RunRow(*row)) for row in rows]

    def run_names(self) -> list[str]:
        """All names, newest first."""
        return [row[0] for row in self.all("SELECT name FROM run ORDER BY started_ns DESC")]

    def _fold(self, run: RunRow) -> RunSummary:
        with self.connection() as db:
            spans: list[SpanRow] = []
            for row in db.execute(
                "SELECT span_id, parent, start_ns, end_ns, failed, local_root, attempt, step, model,"
                " input_tokens, output_tokens FROM span WHERE trace_id = ?",
                (run.trace_id,),
            ):
                spans.append(_span(row))
            for row in db.execute(
                "SELECT span_id, parent, start_ns, step, model FROM pending WHERE trace_id = ?",
                (run.trace_id,),
            ):
                spans.append(_pending(row))
            members: list[Any] = [
                row[0]
                for row in db.execute(
                    "SELECT instance.id FROM run_instance JOIN instance"
                    " ON instance.id = run_instance.instance"
                    " WHERE run_instance.trace_id = ? ORDER BY started_ns, instance.id",
                    (run.trace_id,),
                )
            ]
            instances = [_instance(db, member) for member in members]
        return fold_run(run, spans, instances, time.time_ns())

    # Changes

    def position(self) -> int:
        """Position of the last change."""
        found = self.one("SELECT position FROM counter")
        return 0 if found is None else found[0]

    def changes(self, after: int, limit: int) -> list[Change]:
        """What was committed after a position: at most ``limit``, and about `CHANGES_BYTES`."""
        changes: list[Change] = []
        size = 0
        with self.connection() as db:
            runs: Iterator[Any] = iter(
                db.execute(
                    "SELECT position, last - first + 1, data, blobs FROM fact_run WHERE position > ?"
                    " ORDER BY position",
                    (after,),
                )
            )
            spans: Iterator[Any] = iter(
                db.execute(
                    "SELECT position, trace_id, span_id, bundle, place, resource.data FROM span"
                    " JOIN resource ON resource.id = span.resource WHERE position > ? ORDER BY position",
                    (after,),
                )
            )
            texts = Texts(lambda id: db.execute("SELECT data FROM bundle WHERE id = ?", (id,)).get)
            for is_run, row in _by_position(runs, spans):
                if len(changes) >= limit or size >= CHANGES_BYTES:
                    break
                if is_run:
                    last, count, data, blobs = row
                    for place, fact in enumerate(open_run(data, blobs, self.blobs), last - count + 1):
                        if place > after:
                            changes.append(Change(place, fact))
                            size += len(fact.body.inline or b"") if fact.body is not None else 100
                    continue
                position, trace_id, span_id, bundle, place, resource = row
                otlp = resource + texts.span(bundle, place)
                changes.append(Change(position, StoredSpan(trace_id, span_id, otlp)))
                size += len(otlp)
        return changes[:limit]


def _by_position(runs: Iterator[Any], spans: Iterator[Any]) -> Iterator[tuple[bool, Any]]:
    """Both, which are sorted, in one order of positions; True with those of ``runs``."""
    run, span = next(runs, None), next(spans, None)
    while run is not None or span is not None:
        if span is None or (run is not None and run[0] < span[0]):
            yield True, run
            run = next(runs, None)
        else:
            yield False, span
            span = next(spans, None)


def _span(row: Any) -> SpanRow:
    span_id, parent, start_ns, end_ns, failed, local_root, attempt, step, model, given, taken = row
    return SpanRow(
        span_id=span_id,
        parent=parent,
        start_ns=start_ns,
        end_ns=end_ns,
        failed=bool(failed),
        local_root=bool(local_root),
        attempt=bool(attempt),
        step=bool(step),
        model=model,
        input_tokens=given,
        output_tokens=taken,
    )


def _pending(row: Any) -> SpanRow:
    span_id, parent, start_ns, step, model = row
    return SpanRow(
        span_id=span_id,
        parent=parent,
        start_ns=start_ns,
        end_ns=None,
        local_root=not parent,
        step=bool(step),
        model=model,
    )


def _instance(db: apsw.Connection, row: int) -> InstanceRow:
    found: Any = db.execute(
        "SELECT instance, trace_id, span_id, started_ns, seen_ns, heartbeat_ns, exited, failed, last_seq"
        " FROM instance WHERE id = ?",
        (row,),
    ).get
    ranges: list[Any] = list(
        db.execute("SELECT first, last FROM fact_range WHERE instance = ? ORDER BY first", (row,))
    )
    instance, trace_id, span_id, started_ns, seen_ns, heartbeat_ns, exited, failed, last_seq = found
    return InstanceRow(
        instance=instance,
        trace_id=trace_id,
        span_id=span_id,
        started_ns=started_ns,
        seen_ns=seen_ns,
        heartbeat_ns=heartbeat_ns,
        exited=bool(exited),
        failed=bool(failed),
        last_seq=last_seq,
        ranges=ranges,
    )
