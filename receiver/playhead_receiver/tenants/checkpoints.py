"""The checkpoints of a tenant, beside its other data."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from playhead_receiver.store.runs.naming import place_beside

if TYPE_CHECKING:
    from playhead_checkpoint.store.sql import SqlCheckpoints

FILE = "checkpoints.sqlite"
SCHEMA_SUFFIX = "checkpoints"


class TenantCheckpoints:
    """A store that is opened when it is first needed.

    ``folder``: where its file is. ``url``: of the tenant's schema in a database, which is used instead:
    the checkpoints have a schema beside it.
    """

    def __init__(self, folder: Path, url: str = "") -> None:
        self._folder = folder
        self._url = url
        self._lock = threading.Lock()
        self._store: SqlCheckpoints | None = None

    @property
    def store(self) -> SqlCheckpoints:
        """The store. `StoreUnavailable`."""
        with self._lock:
            if self._store is None:
                self._store = self._opened()
            return self._store

    def _opened(self) -> SqlCheckpoints:
        if self._url:
            from playhead_checkpoint import PostgresCheckpoints

            return PostgresCheckpoints(place_beside(self._url, SCHEMA_SUFFIX))
        from playhead_checkpoint import SqliteCheckpoints

        return SqliteCheckpoints(self._folder / FILE, synchronous="FULL")

    def close(self) -> None:
        """Close it. Idempotent."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None
