"""The Store on SQLite."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from playhead_checkpoint import BlobFolder
from playhead_checkpoint.claims import forget_claims
from playhead_checkpoint.claims.sqlite import FILE as CLAIMS
from playhead_checkpoint.sqlite_file import empty_log_of
from playhead_core.errors import StoreUnavailable
from playhead_core.integrity.tombstones import Why
from playhead_receiver.storage.api.maintenance import Finding
from playhead_receiver.storage.api.retention import Deleted
from playhead_receiver.storage.content.blobs import BlobStores, LocationFile
from playhead_receiver.storage.sql.engine import SqlStore
from playhead_receiver.storage.sql.maintenance.compaction import QUIET_S
from playhead_receiver.storage.sql.maintenance.verify import verify
from playhead_receiver.storage.sqlite.backup import copy_store
from playhead_receiver.storage.sqlite.checkpoint_file import CheckpointFile
from playhead_receiver.storage.sqlite.database import SqliteDb
from playhead_receiver.storage.sqlite.logs import Logs, move_log
from playhead_receiver.storage.sqlite.overwriting import Overwriter
from playhead_receiver.storage.sqlite.reader import SqliteReader
from playhead_receiver.storage.sqlite.schema import FILE
from playhead_receiver.storage.sqlite.search import FILE as SEARCH
from playhead_receiver.storage.sqlite.search import WIPED_AT_ONCE_BYTES, SqliteSearch
from playhead_receiver.storage.sqlite.tables import LABELS
from playhead_receiver.storage.sqlite.writing import SqliteBackend
from playhead_receiver.storage.values.stored import Batch, PreparedBatch, Receipt
from playhead_receiver.storage.writing.prepare import Prepared, offloads, prepare
from playhead_receiver.storage.writing.recent_bundles import RecentBundles
from playhead_receiver.storage.writing.writer import Writer

if TYPE_CHECKING:
    from playhead_receiver.storage.content.references import References


BLOBS = "blobs"
FREE_SHARE = 0.1
"""Share of a file's pages that may be free before some are returned."""
VACUUMED_PAGES = 1024
"""Pages returned at a time."""


class CommitGate:
    """Any number of `one` at the same time, or a single `held`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._passing = 0
        self._held = False

    @contextmanager
    def one(self) -> Generator[None]:
        """Shared: pass, after waiting while the gate is held."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held)
            self._passing += 1
        try:
            yield
        finally:
            with self._changed:
                self._passing -= 1
                self._changed.notify_all()

    @contextmanager
    def held(self) -> Generator[None]:
        """Exclusive: wait until no commit is passing, then let none pass."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held)
            self._held = True
            self._changed.wait_for(lambda: not self._passing)
        try:
            yield
        finally:
            with self._changed:
                self._held = False
                self._changed.notify_all()


def has_room(db: SqliteDb) -> bool:
    """Whether more than `FREE_SHARE` of the file is free."""
    return int(db.pragma("freelist_count")) > int(db.pragma("page_count")) * FREE_SHARE


def give_back(db: SqliteDb) -> None:
    """Return some free pages to the file system. For the writer."""
    list(db.execute(f"PRAGMA incremental_vacuum({VACUUMED_PAGES})"))  # each row read frees one page


class SqliteStore(SqlStore[SqliteDb]):
    """A `Store` in ``<data_dir>/store.sqlite`` (WAL, synchronous=FULL) and ``<data_dir>/blobs``.

    Any thread and any process may read. The caller that opens it for writing must exclude other writers
    (`open_store` does); ``on_close`` is called once at the end.
    """

    _labels = LABELS

    def __init__(
        self,
        data_dir: Path,
        *,
        read_only: bool = False,
        blobs_url: str = "",
        references: References | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        path, folder = data_dir / FILE, BlobFolder(data_dir / BLOBS)
        self._checkpoint_file = CheckpointFile(data_dir, read_only=read_only)
        logs = {
            path: self._empty_log,
            data_dir / SEARCH: lambda: self._index.empty_log(),
            self._checkpoint_file.path: self._checkpoint_file.empty_log,
            data_dir / CLAIMS: lambda: empty_log_of(data_dir / CLAIMS),
        }
        self._logs = Logs(logs, read_only=read_only)
        blobs = BlobStores(folder, LocationFile(data_dir))
        if blobs_url:
            blobs.use(blobs_url)
        recent = RecentBundles()
        writer = None if read_only else Writer(SqliteBackend(path, blobs, recent))
        reader = SqliteReader(path, blobs)
        super().__init__(str(path), reader, blobs, writer, recent, on_close)
        self._path, self._data_dir = path, data_dir
        self._database, self._folder = reader, folder
        self._search = self._index = SqliteSearch(data_dir, reader, self, recent, references)
        self._checkpoints = self._checkpoint_file
        self._commits = CommitGate()
        self._blob_deletion = threading.Lock()
        self._overwriter = Overwriter(self._overwrite)
        self._logs.empty()

    def commit(self, batch: Batch | PreparedBatch) -> Receipt:
        """Store a batch. It is on disk when this returns."""
        writer = self._require_writer()
        if not isinstance(batch, Batch):
            assert isinstance(batch, Prepared), "the only kind of prepared batch"
            return writer.write(batch)
        try:
            with self._commits.one() if offloads(batch) else nullcontext():
                return writer.write(prepare(batch, self._blobs, self._cutter))
        except OSError as problem:
            raise StoreUnavailable(
                f"the blobs of {self._name} cannot be written",
                cause=str(problem),
                hint="check free space and permissions: playhead doctor",
            ) from problem

    # Maintenance

    def verify(self) -> Iterator[Finding]:
        """Read everything, compare it with its digests and with what refers to it; yield all defects."""
        with self._database.connection() as db:
            try:
                rows: Any = db.execute("PRAGMA integrity_check(20)")
                for (said,) in rows:
                    if said != "ok":
                        yield Finding("database", FILE, str(said))
                yield from verify(db, self._blobs)
            except apsw.CorruptError as problem:
                yield Finding("database", FILE, f"it cannot be read further: {problem}")
        yield from self._checkpoints.verify()

    def delete(self, trace_ids: Sequence[bytes], by: str = "", why: Why = Why.DELETED) -> Deleted:
        """Delete runs and everything that only they use; on this machine also their claims."""
        with self._logs.deleting():
            done = self._delete_rows(trace_ids, by, why)
            forget_claims(self._data_dir, trace_ids)
            blobs = self._delete_blobs(done.blobs)
            checkpoints = self._checkpoints.delete_runs(trace_ids)
        wiped = self._overwriter.is_done_soon()
        return Deleted(done.runs, done.spans, done.facts, blobs, checkpoints, wiped)

    def delete_strays(self, before_ns: int, most: int) -> int:
        """Delete the oldest checkpoints that belong to no run; see `Retention.delete_strays`."""
        with self._logs.deleting():
            return super().delete_strays(before_ns, most)

    def sweep(self) -> Deleted:
        """Delete blobs that nothing refers to, and checkpoints that deleted runs have left."""
        with self._logs.deleting():
            blobs = self._delete_blobs(self._blobs.settled())
            checkpoints = self._checkpoints.delete_runs(self._left_behind())
        return Deleted(blobs=blobs, checkpoints=checkpoints, wiped=self._overwriter.is_done_soon())

    def empty_logs(self) -> bool:
        """Overwrite what was deleted, and empty the logs that may hold it; whether none does."""
        return self._wipe_index() and self._logs.empty()

    def _overwrite(self) -> bool:
        """Do the same after a deletion, except for work that takes long."""
        wiped = self._wipe_index(WIPED_AT_ONCE_BYTES)
        return self._logs.empty_soon() and wiped

    def _wipe_index(self, most_bytes: int | None = None) -> bool:
        """Remove deleted content from the index and overwrite it; see `SqliteSearch.wipe`."""
        self._forget_words()
        if not self._index.may_hold_removed:
            return True
        with self._logs.deleting():
            return self._index.wipe(most_bytes)

    def compact(self, quiet_s: float = QUIET_S) -> int:
        """Join frames of runs that received nothing for ``quiet_s``, or else give back free pages."""
        made = super().compact(quiet_s)
        if not made:
            with self._database.connection() as db:
                room = has_room(db)
            if room:
                self._require_writer().run(give_back, forgets=False)
            self._checkpoint_file.give_back()
        return made

    def size_bytes(self) -> int:
        """Bytes that are in use: pages of the database, blobs."""
        with self._database.connection() as db:
            pages = int(db.pragma("page_count")) - int(db.pragma("freelist_count"))
            used = pages * int(db.pragma("page_size"))
        used += sum(self._folder.size_bytes(digest) for digest in self._folder)
        return used + self._blobs.elsewhere_bytes()

    def used_bytes(self) -> int:
        """As `size_bytes`: pages that a deletion left free do not count."""
        return self.size_bytes()

    def backup(self, folder: Path) -> int:
        """Copy one snapshot of the store into a new or empty folder; return how many blobs it lacks."""
        with self._blob_deletion, self._database.connection() as db:
            return copy_store(db, self._blobs, folder, self._checkpoint_file)

    def _forget_words(self) -> None:
        """Remove deleted content from the search index."""
        last = self._search.forget()
        if not last:
            return
        with self._logs.deleting():
            self._require_writer().run(
                lambda db: db.execute("DELETE FROM unsearch WHERE rowid <= ?", (last,)) and None,
                forgets=False,
            )

    @contextmanager
    def _commits_held(self) -> Generator[None]:
        with self._blob_deletion, self._commits.held():
            yield

    def _empty_log(self) -> bool:
        return move_log(self._path) and self._require_writer().checkpoint()

    def close(self) -> None:
        """Release all resources. Idempotent."""
        self._overwriter.close()
        self._database.close()
        self._checkpoints.close()
        if self._writer is not None:
            self._writer.close()
        self._closed()
