"""The one thread that writes: whatever waits when its turn comes shares one commit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from copy import copy
from typing import Any, Final, Generic, Protocol, TypeVar

from playhead_receiver.store.protocol.store import Receipt
from playhead_receiver.store.writing.prepare import Prepared
from playhead_semconv.errors import StoreUnavailable

GROUP_BYTES = 32 * 1024 * 1024
"""Compressed bytes that one transaction takes before it commits."""


T = TypeVar("T")
D = TypeVar("D", covariant=True)
_NOTHING: Final = object()


class Hands(Protocol[D]):
    """What an engine does for its writer, in the writer's thread. ``D``: its connection."""

    @property
    def name(self) -> str:
        """What the store is called in messages."""
        ...

    @property
    def position(self) -> int:
        """Position of the last change that is on disk."""
        ...

    @property
    def away(self) -> bool:
        """Whether the last transaction could not even begin, so that another one cannot either."""
        ...

    def write(self, batches: Sequence[Prepared]) -> list[Receipt]:
        """Write all of them in one transaction, or nothing."""
        ...

    def transact(self, action: Callable[[D], T], forgets: bool) -> T:
        """Let ``action`` change the tables, in one transaction.

        ``forgets``: what is remembered of them may not be true afterwards.
        """
        ...

    def empty_log(self) -> bool:
        """Move the log into the tables and empty it; False if a reader held an older state too long."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class _Errand:
    """Something else that the writer does, alone, in a transaction of its own; None: a checkpoint."""

    __slots__ = ("action", "done", "forgets")

    def __init__(self, action: Callable[[Any], Any] | None, forgets: bool) -> None:
        self.action = action
        self.forgets = forgets
        self.done: Future[Any] = Future()


class _Job:
    __slots__ = ("prepared", "receipt")

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.receipt: Future[Receipt] = Future()


class Writer(Generic[D]):
    """Takes prepared batches from any thread; each is on disk when its receipt is given."""

    def __init__(self, hands: Hands[D]) -> None:
        self._hands = hands
        self._jobs: queue.SimpleQueue[_Job | _Errand | None] = queue.SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="playhead-store", daemon=True)
        self._thread.start()

    @property
    def position(self) -> int:
        """Position of the last change that is on disk."""
        return self._hands.position

    def write(self, prepared: Prepared) -> Receipt:
        """Write one batch; on disk when it returns. `StoreUnavailable` if it cannot be."""
        job = _Job(prepared)
        self._put(job)
        return job.receipt.result()

    def run(self, action: Callable[[D], T], *, forgets: bool = True) -> T:
        """Let ``action`` change the tables in a transaction; what it returns, when that is on disk.

        ``forgets``: what the writer remembers of the tables may not be true afterwards.
        `StoreUnavailable` as above.
        """
        errand = _Errand(action, forgets)
        self._put(errand)
        return errand.done.result()

    def checkpoint(self) -> bool:
        """Move the log into the file and empty it; False if a reader held an older state too long."""
        errand = _Errand(None, forgets=False)
        self._put(errand)
        return errand.done.result()

    def _put(self, job: _Job | _Errand) -> None:
        with self._gate:
            if self._closed:
                raise StoreUnavailable(f"the store {self._hands.name} is closed")
            self._jobs.put(job)

    def close(self) -> None:
        """Write what waits, then stop. Idempotent."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        job = self._jobs.get()
        while job is not None:
            if isinstance(job, _Errand):
                self._do(job)
                job = self._jobs.get()
            else:
                group, after = self._gather(job)
                self._write_group(group)
                job = self._jobs.get() if after is _NOTHING else after
        self._hands.close()

    def _gather(self, first: _Job) -> tuple[list[_Job], Any]:
        """``first`` and the jobs that wait behind it; what stands behind these and is none."""
        group, size = [first], first.prepared.size_bytes
        while size < GROUP_BYTES:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if not isinstance(job, _Job):
                return group, job
            group.append(job)
            size += job.prepared.size_bytes
        return group, _NOTHING

    def _do(self, errand: _Errand) -> None:
        try:
            if errand.action is None:
                errand.done.set_result(self._hands.empty_log())
            else:
                errand.done.set_result(self._hands.transact(errand.action, errand.forgets))
        except BaseException as problem:  # whoever waits for it must hear of it, whatever it is
            errand.done.set_exception(problem)

    def _write_group(self, group: list[_Job]) -> None:
        """Write all in one transaction, or each in its own, so that one that cannot be written is alone.

        Where nothing can be written, all are refused together: none waits for the others' attempts.
        """
        problem = self._attempt(group)
        if problem is None:
            return
        for job in group:
            own = None if len(group) == 1 or self._hands.away else self._attempt([job])
            if job.receipt.done():
                continue
            # Several threads that raise one exception would hold each other's frames by it.
            job.receipt.set_exception(own or (problem if len(group) == 1 else copy(problem)))

    def _attempt(self, group: list[_Job]) -> BaseException | None:
        """Write all of them, or say why none is; whoever waits must hear of that, whatever it is."""
        try:
            receipts = self._hands.write([job.prepared for job in group])
        except BaseException as problem:
            return problem
        for job, receipt in zip(group, receipts, strict=True):
            job.receipt.set_result(receipt)
        return None
