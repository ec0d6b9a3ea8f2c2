"""The Store on PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from playhead_receiver.store.cutting import Cutter
from playhead_receiver.store.fold import SpanRow
from playhead_receiver.store.postgres.blobs import BlobTable
from playhead_receiver.store.postgres.db import PgDb
from playhead_receiver.store.postgres.gate import BlobGate
from playhead_receiver.store.postgres.hands import PostgresHands
from playhead_receiver.store.postgres.place import place_of, prepare_place
from playhead_receiver.store.postgres.reader import Pool, PostgresReader
from playhead_receiver.store.postgres.search import PostgresSearch
from playhead_receiver.store.prepare import OFFLOAD_BYTES, blob_digests, prepare
from playhead_receiver.store.protocol import (
    Batch,
    Change,
    Query,
    Receipt,
    RunSummary,
    StoredSpan,
)
from playhead_receiver.store.resolve import resolve
from playhead_receiver.store.sql.compaction import QUIET_S, drafts, write
from playhead_receiver.store.sql.deletion import Deletion
from playhead_receiver.store.sql.runs import Runs
from playhead_receiver.store.sql.summaries import keep, make, outdated, span_rows
from playhead_receiver.store.sql.tape import SqlTape
from playhead_receiver.store.sql.verify import verify
from playhead_receiver.store.upkeep import Deleted, Finding, Hit, Lag
from playhead_receiver.store.writer import Writer
from playhead_semconv.errors import StoreError, StoreUnavailable
from playhead_semconv.facts import Fact

SUMMED_UP_AT_ONCE = 64


class PostgresStore:
    """A `Store` in a schema of a database, ``postgresql://USER@HOST/DATABASE?schema=playhead``.

    Any number of processes write to it, one transaction of theirs after the other; ``on_close`` is
    called once at the end.
    """

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._place = place_of(url)
        prepare_place(self._place)
        self._pool = Pool(self._place)
        self._blobs = BlobTable(self._pool)
        self._gate = BlobGate(self._pool)
        self._writer = None if read_only else Writer(PostgresHands(self._place, self._blobs))
        self._reader = PostgresReader(self._pool, self._blobs)
        self._runs = Runs(self._reader)
        self._search = PostgresSearch(self._pool, self._reader, self)
        self._cutter = Cutter()
        self._on_close = on_close

    def commit(self, batch: Batch) -> Receipt:
        """Store a batch; the database has committed it when this returns."""
        writer = self._errands()
        offloads = any(
            fact.body is not None and len(fact.body.inline or b"") > OFFLOAD_BYTES
            for fact in batch.facts
        )
        with self._gate.one() if offloads else nullcontext():
            return writer.write(prepare(batch, self._blobs, self._cutter))

    # Upkeep

    def verify(self) -> Iterator[Finding]:
        """Read everything, compare it with its digests and with what refers to it; what is wrong."""
        with self._reader.stream() as db:
            yield from verify(db, self._blobs)

    def delete(self, trace_ids: Sequence[bytes]) -> Deleted:
        """Delete runs with all that only they hold. The server overwrites it when it vacuums."""

        def delete(db: PgDb) -> Deletion:
            deletion = Deletion(db, self._blobs)
            deletion.delete(trace_ids)
            return deletion

        done = self._errands().run(delete)
        blobs = self._delete_blobs(done.blobs)
        self._search.forget()
        return Deleted(done.runs, done.spans, done.facts, blobs, wiped=False)

    def sweep(self) -> Deleted:
        """Delete blobs that nothing refers to."""
        self._errands()
        return Deleted(blobs=self._delete_blobs(self._blobs), wiped=False)

    def mark(self, trace_id: bytes, word: str, on: bool = True) -> None:
        """Put a mark on a run, or take it off."""
        sql = (
            "INSERT INTO mark VALUES (?, ?) ON CONFLICT DO NOTHING"
            if on
            else "DELETE FROM mark WHERE trace_id = ? AND word = ?"
        )
        self._errands().run(lambda db: db.execute(sql, (trace_id, word)) and None, forgets=False)

    def marks(self) -> dict[bytes, set[str]]:
        """The marks of all runs that have any."""
        found: dict[bytes, set[str]] = {}
        for trace_id, word in self._reader.all("SELECT trace_id, word FROM mark"):
            found.setdefault(trace_id, set()).add(word)
        return found

    def index(self) -> int:
        """Make some more of the store searchable; 0 when all of it is, or another receiver does it."""
        self._errands()
        self._search.forget()
        return self._search.index()

    def sum_up(self, limit: int = SUMMED_UP_AT_ONCE) -> int:
        """Bring summaries of runs up to date, at most ``limit``; how many were not."""
        errands = self._errands()
        now_ns = time.time_ns()
        with self._reader.connection() as db:
            made = [make(db, run, now_ns) for run in outdated(db, limit)]
        if made:
            errands.run(lambda db: [keep(db, one) for one in made] and None, forgets=False)
        return len(made)

    def compact(self, quiet_s: float = QUIET_S) -> int:
        """Join frames of runs to which nothing came for ``quiet_s``; how many blocks that made."""
        errands = self._errands()
        with self._reader.connection() as db:
            made = drafts(db, quiet_s)
        if made:
            errands.run(lambda db: write(db, made), forgets=False)
        return len(made)

    def lag(self) -> Lag:
        """How far the search is behind."""
        return self._search.lag()

    def search(self, text: str, limit: int = 20) -> list[Hit]:
        """Where all words are said together, newest first."""
        return self._search.search(text, limit)

    def size_bytes(self) -> int:
        """Bytes of tables and indexes; what was deleted counts until the server has vacuumed."""
        found = self._reader.one(
            "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0) FROM pg_class"
            " JOIN pg_namespace ON pg_namespace.oid = relnamespace"
            " WHERE nspname = ? AND relkind = 'r'",
            (self._place.schema,),
        )
        return 0 if found is None else int(found[0])

    def backup(self, folder: Path) -> None:
        """`StoreError`: PostgreSQL has its own."""
        raise StoreError(
            "a store on PostgreSQL is copied by PostgreSQL's own tools",
            hint=f"pg_dump --schema={self._place.schema} {self._place.name}",
        )

    def _errands(self) -> Writer[PgDb]:
        if self._writer is None:
            raise StoreUnavailable(f"the store {self._place.name} is open for reading only")
        return self._writer

    def _delete_blobs(self, candidates: Iterable[bytes]) -> int:
        """Delete those that nothing refers to, while no commit is under way that may be about to."""
        with self._gate.held():
            used: set[bytes] = set()
            for (offloaded,) in self._reader.all("SELECT blobs FROM fact_run WHERE blobs IS NOT NULL"):
                used |= blob_digests(offloaded)
            gone = [digest for digest in candidates if digest not in used]
            for digest in gone:
                self._blobs.delete(digest)
        return len(gone)

    # Reading

    def tape(self, instance: bytes) -> SqlTape:
        """The tape of a process instance, empty if nothing is known of it."""
        return SqlTape(self._reader, instance)

    def spans(self, trace_id: bytes, only: Collection[bytes] | None = None) -> Iterator[StoredSpan]:
        """Finished spans of a trace, byte for byte as received, in order of arrival."""
        return self._reader.spans(trace_id, only)

    def outline(self, trace_id: bytes) -> list[SpanRow]:
        """All spans of a trace without their content."""
        with self._reader.connection() as db:
            return span_rows(db, trace_id)

    def resources(self) -> list[bytes]:
        """The resources that stored spans have."""
        return self._reader.resources()

    def pending(self, trace_id: bytes) -> Iterator[Fact]:
        """The span-start facts of a trace whose spans have not come."""
        tapes: dict[bytes, SqlTape] = {}
        for instance, seq in self._reader.pending(trace_id):
            if instance not in tapes:
                tapes[instance] = self.tape(instance)
            fact = tapes[instance].fact(seq)
            if fact is not None:
                yield fact

    def resource(self, instance: bytes) -> bytes | None:
        """OTLP `Resource` bytes of a process instance."""
        found = self._reader.one("SELECT resource FROM instance WHERE instance = ?", (instance,))
        return None if found is None else found[0]

    def runs(self, query: Query) -> Iterator[RunSummary]:
        """Summaries of runs, newest first."""
        return self._runs.runs(query)

    def resolve(self, name: str) -> RunSummary:
        """A run by name, ``last``, ``last-1``, ``failed``, trace id, or id prefix."""
        return resolve(name, self._runs)

    def changes(self, after: int, limit: int = 1000) -> Iterator[Change]:
        """Spans and facts committed after position ``after``, in commit order."""
        return iter(self._reader.changes(after, limit))

    def position(self) -> int:
        """Position of the last change, 0 when there is none."""
        return self._reader.position()

    def close(self) -> None:
        """Let go of everything. Idempotent."""
        if self._writer is not None:
            self._writer.close()
        self._pool.close()
        if self._on_close is not None:
            on_close, self._on_close = self._on_close, None
            on_close()
