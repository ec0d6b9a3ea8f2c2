"""Group commit: one writer thread commits all waiting batches in one transaction."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from copy import copy
from typing import Any, Final, Generic, Protocol, TypeVar

from playhead_core.errors import StoreUnavailable
from playhead_receiver.storage.values.stored import Receipt
from playhead_receiver.storage.writing.prepare import Prepared

GROUP_BYTES = 32 * 1024 * 1024
"""Maximum size of a group, in compressed bytes."""


T = TypeVar("T")
D = TypeVar("D", covariant=True)
_NOTHING: Final = object()


class WriterBackend(Protocol[D]):
    """Operations of an engine in the writer's thread. ``D``: type of its connection."""

    @property
    def name(self) -> str:
        """Name of the store in messages."""
        ...

    @property
    def position(self) -> int:
        """Position of the last change that is on disk."""
        ...

    @property
    def away(self) -> bool:
        """Whether the last transaction could not even begin, so a retry would fail too."""
        ...

    def write(self, batches: Sequence[Prepared]) -> list[Receipt]:
        """Write all batches in one transaction, or none."""
        ...

    def transact(self, action: Callable[[D], T], forgets: bool) -> T:
        """Run ``action``, which changes the tables, in one transaction.

        ``forgets``: drop cached knowledge about the tables, which may be wrong afterwards.
        """
        ...

    def empty_log(self) -> bool:
        """Checkpoint and empty the log; False if a reader held an older state too long."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class _TransactionJob:
    """Other work of the writer, in its own transaction. ``action`` None: a checkpoint."""

    __slots__ = ("action", "done", "forgets")

    def __init__(self, action: Callable[[Any], Any] | None, forgets: bool) -> None:
        self.action = action
        self.forgets = forgets
        self.done: Future[Any] = Future()


class _BatchJob:
    __slots__ = ("prepared", "receipt")

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.receipt: Future[Receipt] = Future()


class Writer(Generic[D]):
    """Accepts prepared batches from any thread. A batch is on disk when its receipt is returned."""

    def __init__(self, backend: WriterBackend[D]) -> None:
        self._backend = backend
        self._jobs: queue.SimpleQueue[_BatchJob | _TransactionJob | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="playhead-store", daemon=True)
        self._thread.start()

    @property
    def position(self) -> int:
        """Position of the last change that is on disk."""
        return self._backend.position

    def write(self, prepared: Prepared) -> Receipt:
        """Write one batch. It is on disk on return. `StoreUnavailable` if that is impossible."""
        job = _BatchJob(prepared)
        self._put(job)
        return job.receipt.result()

    def run(self, action: Callable[[D], T], *, forgets: bool = True) -> T:
        """Run ``action`` in a transaction. Returns its result when the commit is on disk.

        ``forgets``: drop cached knowledge about the tables. `StoreUnavailable` as in `write`.
        """
        job = _TransactionJob(action, forgets)
        self._put(job)
        return job.done.result()

    def checkpoint(self) -> bool:
        """Checkpoint and empty the log; False if a reader held an older state too long."""
        job = _TransactionJob(None, forgets=False)
        self._put(job)
        return job.done.result()

    def _put(self, job: _BatchJob | _TransactionJob) -> None:
        with self._gate:
            if self._closed:
                raise StoreUnavailable(f"the store {self._backend.name} is closed")
            self._jobs.put(job)

    def close(self) -> None:
        """Write all waiting batches, then stop. Idempotent."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        job = self._jobs.get()
        while job is not None:
            if isinstance(job, _TransactionJob):
                self._do(job)
                job = self._jobs.get()
            else:
                group, after = self._gather(job)
                self._write_group(group)
                job = self._jobs.get() if after is _NOTHING else after
        self._backend.close()

    def _gather(self, first: _BatchJob) -> tuple[list[_BatchJob], Any]:
        """``first`` and the pending batches after it; the next queue item if it is not a batch."""
        group, size = [first], first.prepared.size_bytes
        while size < GROUP_BYTES:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if not isinstance(job, _BatchJob):
                return group, job
            group.append(job)
            size += job.prepared.size_bytes
        return group, _NOTHING

    def _do(self, job: _TransactionJob) -> None:
        try:
            if job.action is None:
                job.done.set_result(self._backend.empty_log())
            else:
                job.done.set_result(self._backend.transact(job.action, job.forgets))
        except BaseException as problem:  # passed to the waiting thread, whatever it is
            job.done.set_exception(problem)

    def _write_group(self, group: list[_BatchJob]) -> None:
        """Write all in one transaction. If that fails, each in its own, to isolate a bad batch.

        If the store is away, all are refused together, so that none waits for the others' attempts.
        """
        problem = self._attempt(group)
        if problem is None:
            return
        for job in group:
            own = None if len(group) == 1 or self._backend.away else self._attempt([job])
            if job.receipt.done():
                continue
            # A copy for each: threads that raise the same exception keep each other's frames alive.
            job.receipt.set_exception(own or (problem if len(group) == 1 else copy(problem)))

    def _attempt(self, group: list[_BatchJob]) -> BaseException | None:
        """Write all jobs in one transaction. Returns the exception, of any kind, if none was written."""
        try:
            receipts = self._backend.write([job.prepared for job in group])
        except BaseException as problem:
            return problem
        for job, receipt in zip(group, receipts, strict=True):
            job.receipt.set_result(receipt)
        return None
