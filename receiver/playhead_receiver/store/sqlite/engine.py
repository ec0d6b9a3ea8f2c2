"""The Store on SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from playhead_checkpoint import BlobFolder
from playhead_receiver.store.cutting import Cutter
from playhead_receiver.store.prepare import prepare
from playhead_receiver.store.protocol import (
    Batch,
    Change,
    Query,
    Receipt,
    RunSummary,
    StoredSpan,
)
from playhead_receiver.store.resolve import resolve
from playhead_receiver.store.sqlite.reader import Reader
from playhead_receiver.store.sqlite.schema import FILE
from playhead_receiver.store.sqlite.tape import SqliteTape
from playhead_receiver.store.sqlite.writer import Writer
from playhead_semconv.errors import StoreUnavailable
from playhead_semconv.facts import Fact

BLOBS = "blobs"


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
        self._writer = None if read_only else Writer(path, self._blobs)
        self._reader = Reader(path, self._blobs)
        self._cutter = Cutter()
        self._on_close = on_close

    def commit(self, batch: Batch) -> Receipt:
        """Store a batch; on disk when it returns."""
        if self._writer is None:
            raise StoreUnavailable(f"the store {self._path} is open for reading only")
        try:
            prepared = prepare(batch, self._blobs, self._cutter)
        except OSError as problem:
            raise StoreUnavailable(
                f"the blobs beside {self._path} cannot be written",
                cause=str(problem),
                hint="look at free space and permissions: playhead doctor",
            ) from problem
        return self._writer.write(prepared)

    def tape(self, instance: bytes) -> SqliteTape:
        """The tape of a process instance, empty if nothing is known of it."""
        return SqliteTape(self._reader, instance)

    def spans(self, trace_id: bytes) -> Iterator[StoredSpan]:
        """Finished spans of a trace, byte for byte as received, in order of arrival."""
        return self._reader.spans(trace_id)

    def pending(self, trace_id: bytes) -> Iterator[Fact]:
        """The span-start facts of a trace whose spans have not come."""
        tapes: dict[bytes, SqliteTape] = {}
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
        return self._reader.runs(query)

    def resolve(self, name: str) -> RunSummary:
        """A run by name, ``last``, ``last-1``, ``failed``, trace id, or id prefix."""
        return resolve(name, self._reader)

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
