"""The part of the store that is the same on every database: reading, and most of the maintenance."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from playhead_core.errors import StoreUnavailable
from playhead_core.facts import Fact
from playhead_core.integrity import Link
from playhead_core.integrity.tombstones import Tombstone, Why
from playhead_core.otlp.log_records import ALL_LOGS, LogQuery
from playhead_core.tape.protocols import Tape
from playhead_core.tape.span_starts import starts_of
from playhead_receiver.storage.api.retention import History
from playhead_receiver.storage.api.search import Hit, Lag, TraceFilter
from playhead_receiver.storage.api.store import OF_ONE_RUN, NotOffered, words_of
from playhead_receiver.storage.content.blobs import BlobStores
from playhead_receiver.storage.content.cutting import Cutter
from playhead_receiver.storage.runs.attribute_conditions import with_attributes
from playhead_receiver.storage.runs.resolve import resolve
from playhead_receiver.storage.sql.checkpoint_location import CheckpointLocation
from playhead_receiver.storage.sql.history import HistoryAgeing
from playhead_receiver.storage.sql.maintenance.compaction import QUIET_S, drafts, write
from playhead_receiver.storage.sql.maintenance.deletion import Deletion
from playhead_receiver.storage.sql.reading.large_runs import LargeRuns
from playhead_receiver.storage.sql.reading.part_of_tape import part_of_run
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.sql.reading.run_lists import RunLists
from playhead_receiver.storage.sql.reading.run_words import (
    changed_runs,
    changed_tapes,
    store_findings,
    underived,
)
from playhead_receiver.storage.sql.reading.summaries import (
    ComputedSummary,
    StoredRun,
    ancestry,
    compute_summary,
    label_of,
    older,
    outdated,
    span_rows,
    store_summary,
)
from playhead_receiver.storage.sql.reading.tape import SqlTape
from playhead_receiver.storage.sql.search.searcher import Searcher
from playhead_receiver.storage.sql.tables.blob_uses import unused
from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.sql.tables.integrity import links_of, not_chained, tombstones
from playhead_receiver.storage.sql.tables.shared_values import SharedTable, put
from playhead_receiver.storage.values.run_summaries import Need, Query, RunSummary
from playhead_receiver.storage.values.span_labels import AWAITED, DerivedCall, SpanRow
from playhead_receiver.storage.values.stored import Change, StoredLog, StoredSpan, StoreVersion
from playhead_receiver.storage.writing.recent_bundles import RecentBundles
from playhead_receiver.storage.writing.writer import Writer

if TYPE_CHECKING:
    from playhead_checkpoint.claims.leased import LeasedClaims
    from playhead_checkpoint.store.sql import SqlCheckpoints
    from playhead_receiver.storage.api.search import Search

log = logging.getLogger(__name__)

SUMMED_UP_AT_ONCE = 64
LOOKED_AT_ONCE = 10_000
"""Spans that are examined at a time."""
DELETED_AT_ONCE = 32
"""Blobs that are deleted at a time; commits wait meanwhile."""

_IS_RUN = "SELECT 1 FROM run WHERE trace_id = ?"

D = TypeVar("D", bound=Db)


class SqlStore(ABC, Generic[D]):
    """The part of a `Store` whose statements run on every engine. ``D``: the type of its connection."""

    _labels: SharedTable
    _search: Searcher
    _checkpoints: CheckpointLocation

    def __init__(
        self,
        name: str,
        reader: SqlReader,
        blobs: BlobStores,
        writer: Writer[D] | None,
        recent: RecentBundles,
        on_close: Callable[[], None] | None,
    ) -> None:
        """``name``: of the store, for messages. ``writer``: None if the store is open read-only.

        ``recent``: the bundles that ``writer`` has committed and the search index has not taken.
        """
        self._name = name
        self._reader = reader
        self._blobs = blobs
        self._writer = writer
        self._recent = recent
        self._large = LargeRuns()
        self._runs = RunLists(reader, self._large)
        self._cutter = Cutter()
        self._history_ageing = HistoryAgeing(reader)
        self._on_close = on_close
        self._set_aside: dict[bytes, int] = {}
        """Runs that cannot be summed up, each with the position of the failed attempt."""
        self._older_after: bytes | None = b""
        """Trace id up to which summaries of earlier versions were updated; None: all were."""

    # Reading

    def tape(self, instance: bytes) -> SqlTape:
        """The tape of a process instance; empty if nothing of it is stored."""
        return SqlTape(self._reader, instance)

    def tape_of(self, instance: bytes, trace_id: bytes) -> Tape:
        """The tape of a process instance, restricted to what the run of a trace may need."""
        return part_of_run(self._reader, SqlTape(self._reader, instance), trace_id)

    def spans(self, trace_id: bytes, only: Collection[bytes] | None = None) -> Iterator[StoredSpan]:
        """Finished spans of a trace, byte for byte as received, in order of arrival."""
        return self._reader.spans(trace_id, only)

    def logs(self, trace_id: bytes, wanted: LogQuery = ALL_LOGS) -> Iterator[StoredLog]:
        """Log records of a trace, byte for byte as received, by time."""
        return self._reader.logs(trace_id, wanted)

    def outline(self, trace_id: bytes) -> list[SpanRow]:
        """All spans of a trace without their content."""
        with self._reader.connection() as db:
            return span_rows(db, trace_id)

    def names(self, trace_id: bytes, only: Collection[bytes] | None = None) -> dict[bytes, str]:
        """Names of finished spans of a trace, by span id."""
        return self._reader.names(trace_id, only)

    def stamp(self, trace_id: bytes) -> tuple[object, ...]:
        """A value that changes whenever spans, facts or log records of a trace change."""
        return self._reader.stamp(trace_id)

    def ancestry(self, trace_id: bytes, span_ids: Collection[bytes]) -> list[SpanRow]:
        """These spans of a trace and all their ancestors, without their content."""
        with self._reader.connection() as db:
            return ancestry(db, trace_id, span_ids)

    def resources(self) -> list[bytes]:
        """The resources of stored spans."""
        return self._reader.resources()

    def pending(self, trace_id: bytes) -> Iterator[Fact]:
        """The span-start facts of a trace whose spans have not arrived."""
        tapes: dict[bytes, SqlTape] = {}
        for instance, seq, span_id in self._reader.pending(trace_id):
            if instance not in tapes:
                tapes[instance] = self.tape(instance)
            fact = tapes[instance].fact(seq)
            if fact is not None:
                yield from (start for start in starts_of(fact) if start.span_id == span_id)

    def chain(self, instance: bytes) -> list[Link]:
        """The hash chain over the facts of a process instance, first link first."""
        with self._reader.connection() as db:
            row = db.execute("SELECT id FROM instance WHERE instance = ?", (instance,)).get
            return [] if row is None else list(links_of(db, row, instance))

    def resource(self, instance: bytes) -> bytes | None:
        """OTLP `Resource` bytes of a process instance."""
        found = self._reader.one("SELECT resource FROM instance WHERE instance = ?", (instance,))
        return None if found is None else found[0]

    def runs(self, query: Query) -> Iterator[RunSummary]:
        """Summaries of the runs that ``query`` selects, in its order."""
        if not query.attributes:
            return self._runs.runs(query)
        return with_attributes(cast("Search", self), query, self._runs.runs)

    def resolve(self, name: str) -> RunSummary:
        """A run by name, ``last``, ``last-1``, ``failed``, trace id, or id prefix."""
        return resolve(name, self._runs)

    def changes(self, after: int, limit: int = 1000) -> Iterator[Change]:
        """Spans and facts committed after position ``after``, in commit order."""
        return iter(self._reader.changes(after, limit))

    def position(self) -> int:
        """Position of the last change, 0 when there is none."""
        return self._reader.position()

    def version(self) -> StoreVersion:
        """A value that changes whenever the content changes."""
        return self._reader.version()

    # Checkpoints

    def checkpoints(self) -> SqlCheckpoints:
        """The checkpoints, which are stored next to the runs."""
        return self._checkpoints.open()

    def existing_checkpoints(self) -> SqlCheckpoints | None:
        """The checkpoints; None if none was ever stored."""
        return self._checkpoints.existing()

    def claims(self) -> LeasedClaims:
        """The claims of effects that agents on other machines make."""
        return self._checkpoints.claims()

    def _left_behind(self) -> list[bytes]:
        """Deleted runs that have checkpoints: they arrived later, or the deletion did not finish."""
        runs = self._checkpoints.runs()
        unknown = self._without_run(runs)
        if not unknown:
            return []
        with self._reader.connection() as db:
            return [id for one in tombstones(db) for id, _ in one.runs if id in unknown]

    def _without_run(self, trace_ids: Collection[bytes]) -> set[bytes]:
        """Those of ``trace_ids`` that have no stored span."""
        with self._reader.connection() as db:
            return {run for run in trace_ids if db.execute(_IS_RUN, (run,)).get is None}

    def delete_strays(self, before_ns: int, most: int) -> int:
        """Delete the oldest checkpoints that belong to no run; see `Retention.delete_strays`."""
        return self._checkpoints.delete_strays(self._without_run, before_ns, most)

    def checkpoint_bytes(self) -> int:
        """Bytes that the checkpoints take; deleted ones do not count. May read all rows."""
        return self._checkpoints.used_bytes()

    # Maintenance

    def mark(self, trace_id: bytes, word: str, on: bool = True) -> None:
        """Put a mark on a run, or remove it."""
        sql = (
            "INSERT INTO mark VALUES (?, ?) ON CONFLICT DO NOTHING"
            if on
            else "DELETE FROM mark WHERE trace_id = ? AND word = ?"
        )
        self._require_writer().run(lambda db: db.execute(sql, (trace_id, word)) and None, forgets=False)

    def marks(self) -> dict[bytes, set[str]]:
        """The marks of all runs that have any."""
        found: dict[bytes, set[str]] = {}
        for trace_id, word in self._reader.all("SELECT trace_id, word FROM mark"):
            found.setdefault(trace_id, set()).add(word)
        return found

    def not_chained(self) -> int:
        """How many processes have facts that were stored before chains existed."""
        with self._reader.connection() as db:
            return not_chained(db)

    def unexamined_spans(
        self, limit: int = LOOKED_AT_ONCE
    ) -> tuple[dict[bytes, list[bytes]], dict[bytes, list[bytes]], int]:
        """Requests that were not examined yet, other spans that count, the position reached."""
        rows = self._reader.all(
            "SELECT trace_id, span_id, span.position, label.data, input + output FROM counter, span"
            " JOIN label ON label.id = span.label WHERE span.position > looked"
            " ORDER BY span.position LIMIT ?",
            (limit,),
        )
        requests: dict[bytes, list[bytes]] = {}
        calls: dict[bytes, list[bytes]] = {}
        for trace_id, span_id, _, data, tokens in rows:
            label = label_of(data)
            if label.attempt:
                requests.setdefault(trace_id, []).append(span_id)
            elif tokens or (label.step and (label.model or label.call)):
                calls.setdefault(trace_id, []).append(span_id)
        return requests, calls, rows[-1][2] if rows else 0

    def awaited_spans(self) -> dict[bytes, list[bytes]]:
        """Span ids of the latest requests whose bytes had not arrived when examined, by trace id."""
        rows = self._reader.all(
            "SELECT trace_id, span_id, label.data FROM counter, span JOIN label ON label.id = span.label"
            " WHERE span.position <= looked ORDER BY span.position DESC LIMIT ?",
            (LOOKED_AT_ONCE,),
        )
        found: dict[bytes, list[bytes]] = {}
        for trace_id, span_id, data in rows:
            if label_of(data).derived == AWAITED:
                found.setdefault(trace_id, []).append(span_id)
        return found

    def mark_examined(self, position: int) -> None:
        """Note that all spans up to a position were examined."""
        sql = "UPDATE counter SET looked = ? WHERE looked < ?"
        self._require_writer().run(
            lambda db: db.execute(sql, (position, position)) and None, forgets=False
        )

    def store_derived(self, trace_id: bytes, found: Mapping[bytes, DerivedCall]) -> int:
        """Store derived attributes of spans of a trace; return how many of the spans exist."""
        act = partial(put, trace_id=trace_id, found=found, labels=self._labels)
        return self._require_writer().run(act) if found else 0

    def changed_runs(self, after: int) -> tuple[set[bytes], int]:
        """Trace ids of the runs that got spans or facts after a position, and the position reached."""
        up_to = self.position()
        if up_to <= after:
            return set(), after
        with self._reader.connection() as db:
            return changed_runs(db, after, up_to), up_to

    def changed_tapes(self, after: int, up_to: int) -> set[bytes]:
        """Process instances that left facts after a position and up to another one."""
        with self._reader.connection() as db:
            return changed_tapes(db, after, up_to)

    def underived(self, version: int, limit: int = 100) -> list[bytes]:
        """Trace ids of runs with no findings of this version, or that changed later; newest first."""
        with self._reader.connection() as db:
            return underived(db, version, limit)

    def store_findings(self, trace_id: bytes, words: Mapping[str, Collection[str]]) -> None:
        """Replace the words of some kinds that were derived from a run."""
        act = partial(store_findings, trace_id=trace_id, words=words)
        self._require_writer().run(act, forgets=False)

    def sum_up(self, limit: int = SUMMED_UP_AT_ONCE, *, final: bool = False) -> int:
        """Update at most ``limit`` outdated summaries of runs; return how many were updated."""
        writer = self._require_writer()
        with self._reader.connection() as db:
            some = outdated(db, limit + len(self._set_aside) + len(self._large))
            made = self._computed(db, some, limit, final=final)
            if not final and not made and self._older_after is not None:
                some = older(db, self._older_after, limit)
                self._older_after = some[-1].row.trace_id if some else None
                made = self._computed(db, some, limit)
        try:
            if made:
                writer.run(lambda db: [store_summary(db, one) for one in made] and None, forgets=False)
        except OF_ONE_RUN:
            for one in made:
                try:
                    writer.run(partial(store_summary, computed=one), forgets=False)
                except OF_ONE_RUN as problem:
                    self._put_aside(one.run, problem)
        for one in made:
            if self._set_aside.get(one.run.row.trace_id) != one.run.stale:
                self._set_aside.pop(one.run.row.trace_id, None)
        return len(made)

    def _computed(
        self, db: Db, runs: Sequence[StoredRun], limit: int, *, final: bool = False
    ) -> list[ComputedSummary]:
        """At most ``limit`` new summaries of ``runs``, without those that may wait unless ``final``."""
        made: list[ComputedSummary] = []
        now_ns = time.time_ns()
        for run in runs:
            if len(made) == limit:
                break
            if self._set_aside.get(run.row.trace_id) == run.stale:
                continue
            try:
                if not final and self._large.may_wait(db, run, now_ns):
                    continue
                begin_s = time.thread_time()
                made.append(compute_summary(db, run, now_ns))
                self._large.note(db, made[-1], time.thread_time() - begin_s)
            except OF_ONE_RUN as problem:
                self._put_aside(run, problem)
        return made

    def age_out(self, kept: History) -> int:
        """Let some of what services did outside of requests age out; 0 if nothing is left to do."""
        writer = self._require_writer()
        read, dropped = self._history_ageing.step(kept, writer.run)
        if dropped.blobs:
            self._delete_blobs(dropped.blobs)
        return read

    def skipped_runs(self) -> int:
        """How many runs `sum_up` skips because something in them cannot be summed up."""
        return len(self._set_aside)

    def _put_aside(self, run: StoredRun, problem: Exception) -> None:
        log.error("run %s cannot be summed up: %r", run.row.name, problem)
        self._set_aside[run.row.trace_id] = run.stale

    def compact(self, quiet_s: float = QUIET_S) -> int:
        """Join frames of runs that received nothing for ``quiet_s``; return the number of new blocks."""
        writer = self._require_writer()
        with self._reader.connection() as db:
            made = drafts(db, quiet_s)
        if made:
            writer.run(lambda db: write(db, made), forgets=False)
        return len(made)

    def index(self) -> int:
        """Make some more of the store searchable; 0 if all of it is, or another process does it now."""
        self._require_writer()
        self._recent.wanted = True
        self._forget_words()
        return self._search.index()

    def unindex(self) -> None:
        """Delete the search index."""
        self._require_writer()
        self._search.unindex()

    def lag(self) -> Lag:
        """How far the search index is behind the store."""
        return self._search.lag()

    def search(self, text: str, limit: int = 20, trace_filter: TraceFilter | None = None) -> list[Hit]:
        """Where all words occur together, newest first."""
        return self._search.search(text, limit, trace_filter)

    def having(self, needs: Sequence[Need]) -> set[bytes] | None:
        """Ids of the traces that may have, for each need, one of its keys."""
        return self._search.having(needs)

    def lacking(self, part: type) -> NotOffered:
        """The error that says that the engine does not offer a protocol."""
        return NotOffered(f"the store {self._name} offers no {words_of(part)}")

    def _require_writer(self) -> Writer[D]:
        if self._writer is None:
            raise StoreUnavailable(f"the store {self._name} is open for reading only")
        return self._writer

    def tombstones(self) -> Iterator[Tombstone]:
        """The tombstones of deleted runs, oldest first."""
        with self._reader.connection() as db:
            yield from tombstones(db)

    def _delete_rows(self, trace_ids: Sequence[bytes], by: str, why: Why) -> Deletion:
        """Delete runs from the tables. The caller deletes blobs of theirs that are no longer used."""

        def delete(db: D) -> Deletion:
            self._recent.clear()
            self._large.forget(trace_ids)
            deletion = Deletion(db, by, why)
            deletion.delete(trace_ids)
            return deletion

        return self._require_writer().run(delete)

    def _delete_blobs(self, candidates: Collection[bytes]) -> int:
        """Delete those of ``candidates`` that nothing refers to; return how many.

        Commits that might add a reference are held up meanwhile, for a few blobs at a time.
        """
        wanted, deleted = sorted(unused(self._reader, candidates)), 0
        for at in range(0, len(wanted), DELETED_AT_ONCE):
            with self._commits_held():
                gone = unused(self._reader, wanted[at : at + DELETED_AT_ONCE])
                for digest in gone:
                    self._blobs.delete(digest)
            deleted += len(gone)
        return deleted

    @abstractmethod
    def _commits_held(self) -> AbstractContextManager[None]:
        """Hold up all commits that refer to blobs, of all processes, for the ``with`` block."""

    @abstractmethod
    def _forget_words(self) -> None:
        """Remove deleted content from the search index."""

    def _closed(self) -> None:
        """Call ``on_close``, once, after everything was released."""
        if self._on_close is not None:
            on_close, self._on_close = self._on_close, None
            on_close()
