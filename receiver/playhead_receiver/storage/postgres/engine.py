"""The Store on PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

import msgspec

from playhead_core.integrity.tombstones import Why
from playhead_receiver.storage.api.maintenance import Backup, Finding
from playhead_receiver.storage.api.retention import Deleted
from playhead_receiver.storage.api.store import NotOffered
from playhead_receiver.storage.content.blobs import BlobStores
from playhead_receiver.storage.postgres.address import parse_address, prepare_schema
from playhead_receiver.storage.postgres.blobs import BlobGate, BlobTable, LocationTable
from playhead_receiver.storage.postgres.database import PgDb, used_by_rows
from playhead_receiver.storage.postgres.reader import Key, Pool, PostgresReader, alone
from playhead_receiver.storage.postgres.search import PostgresSearch
from playhead_receiver.storage.postgres.tables import LABELS
from playhead_receiver.storage.postgres.writing import PostgresBackend
from playhead_receiver.storage.runs.naming import sibling_url, split_schema
from playhead_receiver.storage.sql.checkpoint_location import CheckpointLocation
from playhead_receiver.storage.sql.engine import SqlStore
from playhead_receiver.storage.sql.maintenance.verify import verify
from playhead_receiver.storage.values.stored import Batch, PreparedBatch, Receipt
from playhead_receiver.storage.writing.prepare import Prepared, offloads, prepare
from playhead_receiver.storage.writing.recent_bundles import RecentBundles
from playhead_receiver.storage.writing.writer import Writer

if TYPE_CHECKING:
    from playhead_checkpoint import PostgresCheckpoints
    from playhead_receiver.storage.content.references import References

HELD_S = 0.1
"""How long a deletion may delay the commits of all receivers; that of a single run may take longer."""
SUFFIX: Final = "Checkpoints"
"""Names of tenants have no capital letters, so no tenant has a schema with this suffix."""


class CheckpointSchema(CheckpointLocation):
    """The schema of a store's checkpoints."""

    def __init__(self, url: str, pool: Pool) -> None:
        """``url``: of the store; ``pool``: its connections."""
        super().__init__()
        self._url = sibling_url(url, SUFFIX)
        self._pool = pool

    def _exists(self) -> bool:
        _, schema = split_schema(self._url)
        with self._pool.one() as connection:
            found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,))
            return found.fetchone() is not None

    def used_bytes(self) -> int:
        """Bytes of their rows, and a share of the indexes."""
        if self.existing() is None:
            return 0
        with self._pool.one() as connection:
            return used_by_rows(PgDb(connection), split_schema(self._url)[1])

    def _open(self) -> PostgresCheckpoints:
        from playhead_checkpoint import PostgresCheckpoints

        return PostgresCheckpoints(self._url)


class PostgresStore(SqlStore[PgDb]):
    """A `Store` in a schema of a database, ``postgresql://USER@HOST/DATABASE?schema=playhead``.

    Any number of processes may write to it; their transactions are serialized. ``on_close`` is called
    once at the end.
    """

    _labels = LABELS

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        blobs_url: str = "",
        references: References | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._address = parse_address(url)
        prepare_schema(self._address)
        self._pool = Pool(self._address)
        blobs = self._shelves = BlobStores(BlobTable(self._pool), LocationTable(self._pool))
        if blobs_url:
            try:
                blobs.use(blobs_url)
            except BaseException:
                self._pool.close()
                raise
        recent = RecentBundles()
        writer = None if read_only else Writer(PostgresBackend(self._address, blobs, recent))
        reader = PostgresReader(self._pool, blobs)
        super().__init__(self._address.name, reader, blobs, writer, recent, on_close)
        self._checkpoints = CheckpointSchema(url, self._pool)
        self._gate = BlobGate(self._pool)
        self._search = PostgresSearch(self._pool, reader, self, recent, references)

    def commit(self, batch: Batch | PreparedBatch) -> Receipt:
        """Store a batch. The database has committed it when this returns."""
        writer = self._require_writer()
        if not isinstance(batch, Batch):
            assert isinstance(batch, Prepared), "the only kind of prepared batch"
            return writer.write(batch)
        with self._gate.one() if offloads(batch) else nullcontext():
            return writer.write(prepare(batch, self._blobs, self._cutter))

    # Maintenance

    def verify(self) -> Iterator[Finding]:
        """Read everything, compare it with its digests and with what refers to it; yield all defects."""
        with self._reader.stream() as db:
            yield from verify(db, self._blobs)
        yield from self._checkpoints.verify()

    def delete(self, trace_ids: Sequence[bytes], by: str = "", why: Why = Why.DELETED) -> Deleted:
        """Delete runs and everything that only they use. The server overwrites it when it vacuums.

        Each transaction deletes only a few runs, because all receivers wait for it.
        """
        gone, blobs = Deleted(wiped=False), set[bytes]()
        waiting, count = list(trace_ids), 1
        while waiting:
            begin = time.monotonic()
            done = self._delete_rows(waiting[:count], by, why)
            del waiting[:count]
            blobs |= done.blobs
            gone = Deleted(
                gone.runs + done.runs, gone.spans + done.spans, gone.facts + done.facts, wiped=False
            )
            count = count * 2 if time.monotonic() - begin < HELD_S / 2 else max(1, count // 2)
        self._forget_words()
        deleted = self._delete_blobs(blobs)
        checkpoints = self._checkpoints.delete_runs(trace_ids)
        return msgspec.structs.replace(gone, blobs=deleted, checkpoints=checkpoints)

    def sweep(self) -> Deleted:
        """Delete blobs that nothing refers to, and checkpoints that deleted runs have left."""
        self._require_writer()
        blobs = self._delete_blobs(self._blobs.settled())
        return Deleted(
            blobs=blobs, checkpoints=self._checkpoints.delete_runs(self._left_behind()), wiped=False
        )

    def exclusive_maintenance(self) -> AbstractContextManager[bool]:
        """Try to become the only receiver that maintains this store; the lock ends with this process."""
        return alone(self._pool, Key.HOUSEKEEPING)

    def size_bytes(self) -> int:
        """Bytes of tables, indexes, and blobs; deleted rows count until the server has vacuumed."""
        found = self._reader.one(
            "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0) FROM pg_class"
            " JOIN pg_namespace ON pg_namespace.oid = relnamespace"
            " WHERE nspname = ? AND relkind = 'r'",
            (self._address.schema,),
        )
        return (0 if found is None else int(found[0])) + self._blobs.elsewhere_bytes()

    def used_bytes(self) -> int:
        """Bytes of rows, their share of the indexes, and blobs; deleted content does not count."""
        with self._reader.connection() as db:
            used = used_by_rows(db, self._address.schema)
        return used + self._blobs.elsewhere_bytes()

    def lacking(self, part: type) -> NotOffered:
        """The error for a protocol that this engine does not offer; for backups it names pg_dump."""
        if part is not Backup:
            return super().lacking(part)
        locations, schema = self._shelves.locations(), self._address.schema
        objects = f"then copy the objects under {' and '.join(locations)}; " if locations else ""
        return NotOffered(
            "a store on PostgreSQL is copied by PostgreSQL's own tools",
            cause=f"pg_dump has the runs, one schema a tenant; {objects}"
            "tokens and audit log are access.sqlite in the data folder",
            hint=f"pg_dump -Fc -f runs.dump -n {schema} -n '{schema}_*' {self._address.name}",
        )

    def _forget_words(self) -> None:
        self._search.forget()

    def _commits_held(self) -> AbstractContextManager[None]:
        return self._gate.held()

    def close(self) -> None:
        """Release all resources. Idempotent."""
        if self._writer is not None:
            self._writer.close()
        self._checkpoints.close()
        self._pool.close()
        self._closed()
