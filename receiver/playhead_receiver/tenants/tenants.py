"""Tenants: each has its own store, so that no query can reach another tenant's data.

The data folder itself is the store of the tenant without a name; the stores of the others are in
``tenants/NAME``. In a database each tenant has a schema.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from playhead_core.errors import StoreError
from playhead_receiver.alerts.rules import AlertEvent
from playhead_receiver.config.configuration import Storage
from playhead_receiver.control.hub import Hub
from playhead_receiver.ingest.budget import Budget
from playhead_receiver.ingest.export import Counted, Intake
from playhead_receiver.ingest.reading_process import SpanReadingProcess
from playhead_receiver.maintenance.background import Indexer, MaintenanceThread
from playhead_receiver.maintenance.findings import FindingsThread, Patience
from playhead_receiver.storage import Store, open_store
from playhead_receiver.storage.api.maintenance import DerivedFindings, Summaries
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.store import needed, offered
from playhead_receiver.storage.runs.naming import tenant_url
from playhead_receiver.storage.sqlite.schema import FILE
from playhead_receiver.system.writer_lock import WriterLock

FOLDER = "tenants"
Report: TypeAlias = Callable[[str, Store, AlertEvent], None]
"""Gets what was found in a run of a tenant, with the tenant's store."""


class TenantServices(msgspec.Struct):
    """The store of a tenant, its intake, maintenance and control hub."""

    store: Store
    intake: Intake
    indexer: Indexer | None
    maintenance: MaintenanceThread
    findings: FindingsThread | None
    """Derives failures and loops; None if the engine of the store keeps none."""
    hub: Hub
    """Connects agents and operators."""
    lock: WriterLock | None = None
    """Lock of the tenant's own folder; the receiver itself holds that of the data folder."""

    def start(self) -> None:
        """Start indexing, maintenance and the derivation of findings."""
        if self.indexer is not None:
            self.indexer.start()
        self.maintenance.start()
        if self.findings is not None:
            self.findings.start()

    def stop(self) -> None:
        """Stop all of it. Idempotent."""
        if self.indexer is not None:
            self.indexer.stop()
        self.maintenance.stop()
        if self.findings is not None:
            self.findings.stop()


class Tenants:
    """The tenants of a data folder or database; their services are opened on first use.

    ``store``: of the tenant without a name. ``storage``: for all tenants. ``span_reader``: the process
    that reads spans under load, for all tenants. Safe from any thread.
    """

    def __init__(
        self,
        data_dir: Path,
        store: Store,
        storage: Storage = Storage(),
        span_reader: SpanReadingProcess | None = None,
        note: Callable[[str, str, str], None] = lambda _tenant, _by, _trace_id: None,
        patience: Patience = Patience(),  # noqa: B008, frozen
        report: Report = lambda _tenant, _store, _event: None,
    ) -> None:
        """``note`` is called with tenant, who deletes, and trace id, for each deleted run.

        ``report`` is called with tenant, its store, and what was found in a run.
        """
        self._note = note
        self._patience = patience
        self._report = report
        self._data_dir = data_dir
        self._storage = storage
        self._span_reader = span_reader
        self._budget, self._counted = Budget(), Counted()
        self._lock = threading.Lock()
        self._open_tenants: dict[str, TenantServices] = {"": self._services("", store, data_dir)}

    @property
    def own(self) -> TenantServices:
        """The services of the tenant without a name."""
        return self._open_tenants[""]

    @property
    def budget(self) -> Budget:
        """The budget of bytes in flight, shared by all tenants."""
        return self._budget

    def services(self, tenant: str) -> TenantServices:
        """The services of a tenant, opened if necessary. `StoreBusy`, `StoreUnavailable`."""
        with self._lock:
            found = self._open_tenants.get(tenant)
            if found is None:
                found = self._open_tenants[tenant] = self._open(tenant)
                found.start()
            return found

    def open_services(self) -> dict[str, TenantServices]:
        """The services of open tenants, by tenant."""
        with self._lock:
            return dict(self._open_tenants)

    def skipped_runs(self) -> int:
        """Number of runs of open tenants that cannot be summed up."""
        stores = [services.store for services in self.open_services().values()]
        return sum(store.skipped_runs() for store in stores if isinstance(store, Summaries))

    def start(self, known: Collection[str] = ()) -> None:
        """Start indexing and maintenance; for all tenants if a policy or history limits what is kept.

        ``known``: tenants that may have a schema in the database; tenants with folders are found.
        """
        self.own.start()
        if self._storage.policy is None and self._storage.history is None:
            return
        found = {path.parent.name for path in (self._data_dir / FOLDER).glob(f"*/{FILE}")}
        for tenant in sorted(set(known) - {""} if self._storage.url else found):
            with suppress(StoreError):  # the next request for the tenant reports it
                self.services(tenant)

    def release_waiters(self) -> None:
        """The receiver is stopping: wake agents and operators that wait for a change."""
        for services in self.open_services().values():
            services.hub.close()

    def close(self) -> None:
        """Stop indexing and maintenance, and close all stores except the receiver's own."""
        for tenant, services in self.open_services().items():
            services.stop()
            if tenant:
                services.store.close()
                if services.lock is not None:
                    services.lock.release()

    def _open(self, tenant: str) -> TenantServices:
        folder = self._data_dir / FOLDER / tenant
        blobs = f"{self._storage.blobs.rstrip('/')}/{FOLDER}/{tenant}" if self._storage.blobs else ""
        if self._storage.url:
            store = open_store(tenant_url(self._storage.url, tenant), blobs=blobs)
            return self._services(tenant, store, folder)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        lock = WriterLock.take(folder)
        try:
            return self._services(tenant, open_store(folder, lock=lock, blobs=blobs), folder, lock)
        except BaseException:
            lock.release()
            raise

    def _services(
        self, tenant: str, store: Store, folder: Path, lock: WriterLock | None = None
    ) -> TenantServices:
        intake = Intake(store, self._budget, self._counted, self._span_reader)
        maintenance = MaintenanceThread(
            store, folder, self._storage.policy, self._storage.history, partial(self._note, tenant)
        )
        indexer = Indexer(needed(store, Search)) if self._storage.search else None
        derived, findings = offered(store, DerivedFindings), None
        if derived is not None:
            report = partial(self._report, tenant, store)
            findings = FindingsThread(derived, self._patience, report)
        return TenantServices(store, intake, indexer, maintenance, findings, Hub(), lock)
