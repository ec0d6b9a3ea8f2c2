"""The store: the protocol `Store`, its engines, and `open_store`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from playhead_core.errors import ConfigurationError, StoreUnavailable
from playhead_receiver.storage.api.maintenance import Finding
from playhead_receiver.storage.api.retention import Deleted
from playhead_receiver.storage.api.search import Hit, Lag
from playhead_receiver.storage.api.store import Store
from playhead_receiver.storage.runs.listing import page_cursor
from playhead_receiver.storage.sqlite import SqliteStore
from playhead_receiver.storage.sqlite.backup import restore
from playhead_receiver.storage.sqlite.schema import FILE, is_older
from playhead_receiver.storage.values.run_summaries import Query, RunStatus, RunSummary, Sort
from playhead_receiver.storage.values.stored import Batch, Change, Receipt, StoredSpan, StoredTape
from playhead_receiver.system.writer_lock import WriterLock

if TYPE_CHECKING:
    from playhead_receiver.storage.content.references import References

__all__ = [
    "Batch",
    "Change",
    "Deleted",
    "Finding",
    "Hit",
    "Lag",
    "Query",
    "Receipt",
    "RunStatus",
    "RunSummary",
    "Sort",
    "Store",
    "StoredSpan",
    "StoredTape",
    "is_database",
    "open_store",
    "page_cursor",
    "restore",
]


def open_store(
    data_dir: str | os.PathLike[str],
    read_only: bool = False,
    lock: WriterLock | None = None,
    blobs: str = "",
    references: References | None = None,
) -> Store:
    """Open the store of a data directory, or of a database if ``data_dir`` is a ``postgresql://`` URL.

    A database allows any number of writers, and needs no ``lock``. A directory has one writer: opening
    it for writing takes its lock, unless the caller holds the lock and passes it as ``lock``;
    `StoreBusy` if another process writes. Any process may open it for reading at any time; it is empty
    if nothing was ever stored. A store of an older version is migrated first, which needs the lock for
    a moment.

    ``blobs``: an object store, ``s3://BUCKET/PREFIX``, for large bodies from now on; the store
    remembers the locations of all. ``references``: reads content that spans refer to, for the index.
    `StoreUnavailable` if disk, file, database or ``blobs`` cannot be used; `ConfigurationError` if
    ``blobs`` belongs to another store, or ``data_dir`` is a URL of another kind.
    """
    if isinstance(data_dir, str) and is_database(data_dir):
        return _on_postgres(data_dir, read_only, blobs, references)
    if isinstance(data_dir, str) and "://" in data_dir:
        raise ConfigurationError(
            f"unknown kind of store: {data_dir.partition('://')[0]}://",
            hint="--store postgresql://USER@HOST/DATABASE",
        )
    folder = Path(data_dir)
    if read_only and is_older(folder / FILE):
        open_store(folder).close()
    if read_only:
        return SqliteStore(folder, read_only=True, references=references)
    if lock is not None:
        return SqliteStore(folder, blobs_url=blobs, references=references)
    own = WriterLock.take(folder)
    try:
        return SqliteStore(folder, blobs_url=blobs, references=references, on_close=own.release)
    except BaseException:
        own.release()
        raise


def is_database(location: str) -> bool:
    """Whether ``location`` is the URL of a database, not a directory."""
    return location.startswith(("postgresql://", "postgres://"))


def _on_postgres(url: str, read_only: bool, blobs: str, references: References | None) -> Store:
    try:
        from playhead_receiver.storage.postgres import PostgresStore  # its driver is an extra
    except ImportError as problem:
        raise StoreUnavailable(
            "the driver of PostgreSQL is not installed",
            cause=str(problem),
            hint="pip install 'playhead[postgres]'",
        ) from None
    return PostgresStore(url, read_only=read_only, blobs_url=blobs, references=references)
