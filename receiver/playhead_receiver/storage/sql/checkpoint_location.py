"""The location of a store's checkpoints, next to its runs; opened when they are first needed."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from playhead_checkpoint.claims.leased import LeasedClaims
from playhead_core.errors import CorruptTape
from playhead_receiver.storage.api.maintenance import Finding

if TYPE_CHECKING:
    from playhead_checkpoint.store.sql import SqlCheckpoints


class CheckpointLocation(ABC):
    """Opens the checkpoints of a store once. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: SqlCheckpoints | None = None
        self._claims: LeasedClaims | None = None

    @abstractmethod
    def _exists(self) -> bool:
        """Whether checkpoints were ever stored here."""

    @abstractmethod
    def _open(self) -> SqlCheckpoints:
        """Open them, and make what is missing."""

    def open(self) -> SqlCheckpoints:
        """The checkpoints. `StoreUnavailable`."""
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def existing(self) -> SqlCheckpoints | None:
        """The checkpoints; None if none was ever stored. `StoreUnavailable`."""
        with self._lock:
            if self._opened is not None:
                return self._opened
        return self.open() if self._exists() else None

    def claims(self) -> LeasedClaims:
        """The claims of effects, next to the checkpoints. `StoreUnavailable`."""
        store = self.open()
        with self._lock:
            if self._claims is None:
                self._claims = LeasedClaims(store)
            return self._claims

    def delete_runs(self, runs: Sequence[bytes]) -> int:
        """Delete the checkpoints that only these runs need, and their claims; return how many."""
        store = self.existing() if runs else None
        if store is None:
            return 0
        self.claims().delete(run.hex() for run in runs)
        return store.delete_runs(runs).checkpoints

    def delete_strays(
        self, gone: Callable[[Collection[bytes]], Collection[bytes]], before_ns: int, most: int
    ) -> int:
        """Delete the oldest ones without a run (`SqlCheckpoints.delete_strays`); return how many."""
        store = self.existing()
        return 0 if store is None else store.delete_strays(gone, before_ns, most).checkpoints

    def used_bytes(self) -> int:
        """Bytes that they take; what was deleted does not count."""
        store = self.existing()
        return 0 if store is None else store.stored_bytes()

    def runs(self) -> list[bytes]:
        """The runs that have checkpoints."""
        store = self.existing()
        return [] if store is None else store.runs()

    def verify(self) -> Iterator[Finding]:
        """Read all of them, and yield what is damaged or missing."""
        try:
            store = self.existing()
            for one in () if store is None else store.found_damages():
                what, where = one.what, one.where
                if what == "database":  # not to be mistaken for the database of the runs
                    what, where = "checkpoint", "database"
                yield Finding(what, where, one.problem, [one.run.hex()] if one.run else [])
        except CorruptTape as problem:
            yield Finding(
                "checkpoint", "database", f"{problem.what}: {problem.cause or ''}".rstrip(": ")
            )

    def close(self) -> None:
        """Close them. Idempotent."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = self._claims = None
