"""The Store on SQLite."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from playhead_checkpoint import BlobFolder
from playhead_receiver.store.cutting import Cutter
from playhead_receiver.store.fold import SpanRow
from playhead_receiver.store.gate import Gate
from playhead_receiver.store.prepare import blob_digests, prepare
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
from playhead_receiver.store.sqlite.backup import copy_store
from playhead_receiver.store.sqlite.hands import SqliteHands
from playhead_receiver.store.sqlite.reader import SqliteReader
from playhead_receiver.store.sqlite.schema import FILE
from playhead_receiver.store.sqlite.search import SqliteSearch
from playhead_receiver.store.sqlite.space import give_back, has_room
from playhead_receiver.store.upkeep import Deleted, Finding, Hit, Lag
from playhead_receiver.store.writer import Writer
from playhead_semconv.errors import StoreUnavailable
from playhead_semconv.facts import Fact

BLOBS = "blobs"
SUMMED_UP_AT_ONCE = 64


class SqliteStore:
    """A `Store` in ``<data_dir>/store.sqlite`` (WAL, synchronous=FULL) and ``<data_dir>/blobs``.

    Reads come from any thread and any process. Who opens it for writing sees to it that nobody else
    does (`open_store` does); ``on_close`` is called once at the end.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        read_only: bool = False,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        path = data_dir / FILE
        self._path = path
        self._blobs = BlobFolder(data_dir / BLOBS)
        self._writer = None if read_only else Writer(SqliteHands(path, self._blobs))
        self._reader = SqliteReader(path, self._blobs)
        self._runs = Runs(self._reader)
        self._search = SqliteSearch(data_dir, self._reader, self)
        self._cutter = Cutter()
        self._commits = Gate()
        self._blob_deletion = threading.Lock()
        self._on_close = on_close

    def commit(self, batch: Batch) -> Receipt:
        """Store a batch; on disk when it returns."""
        if self._writer is None:
            raise StoreUnavailable(f"the store {self._path} is open for reading only")
        try:
            with self._commits.one():
                return self._writer.write(prepare(batch, self._blobs, self._cutter))
        except OSError as problem:
            raise StoreUnavailable(
                f"the blobs beside {self._path} cannot be written",
                cause=str(problem),
                hint="look at free space and permissions: playhead doctor",
            ) from problem

    # Upkeep

    def verify(self) -> Iterator[Finding]:
        """Read everything, compare it with its digests and with what refers to it; what is wrong."""
        with self._reader.connection() as db:
            rows: Any = db.execute("PRAGMA integrity_check(20)")
            for (said,) in rows:
                if said != "ok":
                    yield Finding("database", FILE, str(said))
            yield from verify(db, self._blobs)

    def delete(self, trace_ids: Sequence[bytes]) -> Deleted:
        """Delete runs with all that only they hold."""

        def delete(db: apsw.Connection) -> Deletion:
            deletion = Deletion(db, self._blobs)
            deletion.delete(trace_ids)
            return deletion

        done = self._errands().run(delete)
        blobs = self._delete_blobs(done.blobs)
        self._forget_words()
        return Deleted(done.runs, done.spans, done.facts, blobs, self._wipe())

    def sweep(self) -> Deleted:
        """Delete blobs that nothing refers to."""
        return Deleted(blobs=self._delete_blobs(self._blobs), wiped=self._wipe())

    def mark(self, trace_id: bytes, word: str, on: bool = True) -> None:
        """Put a mark on a run, or take it off."""
        sql = (
            "INSERT OR IGNORE INTO mark VALUES (?, ?)"
            if on
            else ("DELETE FROM mark WHERE trace_id = ? AND word = ?")
        )
        self._errands().run(lambda db: db.execute(sql, (trace_id, word)) and None, forgets=False)

    def marks(self) -> dict[bytes, set[str]]:
        """The marks of all runs that have any."""
        found: dict[bytes, set[str]] = {}
        for trace_id, word in self._reader.all("SELECT trace_id, word FROM mark"):
            found.setdefault(trace_id, set()).add(word)
        return found

    def index(self) -> int:
        """Make some more of the store searchable; 0 when all of it is."""
        self._errands()
        self._forget_words()
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
            made, room = drafts(db, quiet_s), has_room(db)
        if made:
            errands.run(lambda db: write(db, made), forgets=False)
        elif room:
            errands.run(give_back, forgets=False)
        return len(made)

    def lag(self) -> Lag:
        """How far the search is behind."""
        return self._search.lag()

    def search(self, text: str, limit: int = 20) -> list[Hit]:
        """Where all words are said together, newest first."""
        return self._search.search(text, limit)

    def size_bytes(self) -> int:
        """Bytes that are in use: pages of the database, blobs."""
        with self._reader.connection() as db:
            pages = int(db.pragma("page_count")) - int(db.pragma("freelist_count"))
            used = pages * int(db.pragma("page_size"))
        return used + sum(self._blobs.size_bytes(digest) for digest in self._blobs)

    def backup(self, folder: Path) -> None:
        """Copy one state of the store into an empty or new folder."""
        with self._blob_deletion, self._reader.connection() as db:
            copy_store(db, self._blobs, folder)

    def _forget_words(self) -> None:
        """Take out of the index what was deleted."""
        last = self._search.forget()
        if last:
            self._errands().run(
                lambda db: db.execute("DELETE FROM unsearch WHERE rowid <= ?", (last,)) and None,
                forgets=False,
            )

    def _errands(self) -> Writer[apsw.Connection]:
        if self._writer is None:
            raise StoreUnavailable(f"the store {self._path} is open for reading only")
        return self._writer

    def _delete_blobs(self, candidates: Iterable[bytes]) -> int:
        """Delete those that nothing refers to, while no commit is under way that may be about to."""
        with self._blob_deletion, self._commits.held():
            used: set[bytes] = set()
            for (offloaded,) in self._reader.all("SELECT blobs FROM fact_run WHERE blobs IS NOT NULL"):
                used |= blob_digests(offloaded)
            gone = [digest for digest in candidates if digest not in used]
            for digest in gone:
                self._blobs.delete(digest)
        return len(gone)

    def _wipe(self) -> bool:
        """Empty the log, which holds pages as they were."""
        return self._errands().checkpoint()

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
        self._reader.close()
        if self._writer is not None:
            self._writer.close()
        if self._on_close is not None:
            on_close, self._on_close = self._on_close, None
            on_close()
