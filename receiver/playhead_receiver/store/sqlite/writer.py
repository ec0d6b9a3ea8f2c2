"""The one thread that writes: whatever waits when its turn comes shares one commit."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from pathlib import Path

from playhead_checkpoint import BlobFolder
from playhead_receiver.store.prepare import Prepared
from playhead_receiver.store.protocol import Receipt
from playhead_receiver.store.sqlite.rows import Rows
from playhead_receiver.store.sqlite.schema import open_writer, speaking_of
from playhead_semconv.errors import StoreUnavailable

GROUP_BYTES = 32 * 1024 * 1024
"""Compressed bytes that one transaction takes before it commits."""


class _Job:
    __slots__ = ("prepared", "receipt")

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.receipt: Future[Receipt] = Future()


class Writer:
    """Takes prepared batches from any thread; each is on disk when its receipt is given."""

    def __init__(self, path: Path, blobs: BlobFolder) -> None:
        self._path = path
        with speaking_of(path):
            self._db = open_writer(path)
            self._rows = Rows(self._db, blobs)
        self._position = self._rows.position
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="playhead-store", daemon=True)
        self._thread.start()

    @property
    def position(self) -> int:
        """Position of the last change that is on disk."""
        return self._position

    def write(self, prepared: Prepared) -> Receipt:
        """Write one batch; on disk when it returns. `StoreUnavailable` if it cannot be."""
        job = _Job(prepared)
        with self._gate:
            if self._closed:
                raise StoreUnavailable(f"the store {self._path} is closed")
            self._jobs.put(job)
        return job.receipt.result()

    def close(self) -> None:
        """Write what waits, then stop. Idempotent."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._jobs.get()) is not None:
            group, open_ended = self._gather(first)
            self._write_group(group)
            if not open_ended:
                break
        self._db.close()

    def _gather(self, first: _Job) -> tuple[list[_Job], bool]:
        """``first`` and what waits behind it; False when the end was among it."""
        group, size = [first], first.prepared.size_bytes
        while size < GROUP_BYTES:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return group, False
            group.append(job)
            size += job.prepared.size_bytes
        return group, True

    def _write_group(self, group: list[_Job]) -> None:
        try:
            with speaking_of(self._path):
                receipts = self._commit([job.prepared for job in group])
        except BaseException as problem:  # whoever waits for a receipt must hear of it, whatever it is
            self._rows.forget()
            if len(group) > 1:
                for job in group:
                    self._write_group([job])
            else:
                group[0].receipt.set_exception(problem)
            return
        self._position = self._rows.position
        for job, receipt in zip(group, receipts, strict=True):
            job.receipt.set_result(receipt)

    def _commit(self, batches: list[Prepared]) -> list[Receipt]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            receipts = [self._rows.write(prepared) for prepared in batches]
            self._rows.write_counters()
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return receipts
