"""Tenants: each has a store of its own, so that no question can reach another's data.

The data folder itself is the store of the tenant without a name; the others lie in ``tenants/NAME``. In
a database each has a schema.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from playhead_receiver.host.writer_lock import WriterLock
from playhead_receiver.intake.budget import Budget
from playhead_receiver.intake.export import Counted, Intake
from playhead_receiver.intake.reading_process import Apart
from playhead_receiver.maintenance.indexer import Indexer
from playhead_receiver.maintenance.keeper import Keeper
from playhead_receiver.store import Upkeep, open_store
from playhead_receiver.store.keeping.retention import Policy
from playhead_receiver.store.keeping.service_history import History
from playhead_receiver.store.runs.naming import place_of_tenant
from playhead_receiver.store.sqlite.schema import FILE
from playhead_semconv.errors import StoreError

FOLDER = "tenants"


class House(msgspec.Struct):
    """What a tenant's data are kept by."""

    store: Upkeep
    intake: Intake
    indexer: Indexer | None
    keeper: Keeper
    lock: WriterLock | None = None
    """Of the tenant's own folder; the receiver holds that of the data folder."""

    def start(self) -> None:
        """Begin to index and to sum up."""
        if self.indexer is not None:
            self.indexer.start()
        self.keeper.start()

    def stop(self) -> None:
        """Stop that. Idempotent."""
        if self.indexer is not None:
            self.indexer.stop()
        self.keeper.stop()


class Tenants:
    """The houses of a data folder, or of a database (``url``), opened when they are first needed.

    ``blobs``: the object store of the one without a name; the others have ``tenants/NAME`` below it.
    ``apart``: what reads the spans of all of them when there is much to do. ``search``: index them.
    Safe from any thread.
    """

    def __init__(
        self,
        data_dir: Path,
        store: Upkeep,
        url: str = "",
        policy: Policy | None = None,
        history: History | None = None,
        blobs: str = "",
        apart: Apart | None = None,
        search: bool = True,
        note: Callable[[str, str, str], None] = lambda _tenant, _by, _trace_id: None,
    ) -> None:
        """``note`` is told of which tenant a run is deleted, by whom, and its trace id."""
        self._note = note
        self._data_dir = data_dir
        self._url = url
        self._policy = policy
        self._history = history
        self._blobs = blobs
        self._apart = apart
        self._search = search
        self._budget, self._counted = Budget(), Counted()
        self._lock = threading.Lock()
        self._houses: dict[str, House] = {"": self._house("", store, data_dir)}

    @property
    def own(self) -> House:
        """Of the tenant without a name."""
        return self._houses[""]

    @property
    def budget(self) -> Budget:
        """The bytes in flight, of all tenants together."""
        return self._budget

    def house(self, tenant: str) -> House:
        """A tenant's. `StoreBusy`, `StoreUnavailable`."""
        with self._lock:
            found = self._houses.get(tenant)
            if found is None:
                found = self._houses[tenant] = self._open(tenant)
                found.start()
            return found

    def open_houses(self) -> dict[str, House]:
        """Those that are open, by tenant."""
        with self._lock:
            return dict(self._houses)

    def start(self, known: Collection[str] = ()) -> None:
        """Begin to index and to sum up, and where what is kept is bounded, to do so for all tenants.

        ``known``: tenants that may have something in the database; folders are found by themselves.
        """
        self.own.start()
        if self._policy is None and self._history is None:
            return
        found = {path.parent.name for path in (self._data_dir / FOLDER).glob(f"*/{FILE}")}
        for tenant in sorted(set(known) - {""} if self._url else found):
            with suppress(StoreError):  # who comes for it hears of it
                self.house(tenant)

    def close(self) -> None:
        """Stop indexing, and close the stores but the receiver's own."""
        for tenant, house in self.open_houses().items():
            house.stop()
            if tenant:
                house.store.close()
                if house.lock is not None:
                    house.lock.release()

    def _open(self, tenant: str) -> House:
        folder = self._data_dir / FOLDER / tenant
        blobs = f"{self._blobs.rstrip('/')}/{FOLDER}/{tenant}" if self._blobs else ""
        if self._url:
            store = open_store(place_of_tenant(self._url, tenant), blobs=blobs)
            return self._house(tenant, store, folder)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        lock = WriterLock.take(folder)
        try:
            return self._house(tenant, open_store(folder, lock=lock, blobs=blobs), folder, lock)
        except BaseException:
            lock.release()
            raise

    def _house(self, tenant: str, store: Upkeep, folder: Path, lock: WriterLock | None = None) -> House:
        intake = Intake(store, self._budget, self._counted, self._apart)
        keeper = Keeper(store, folder, self._policy, self._history, partial(self._note, tenant))
        return House(store, intake, Indexer(store) if self._search else None, keeper, lock)
