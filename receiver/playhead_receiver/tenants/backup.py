"""Copies a data folder while it is written to, and restores it: stores of all tenants, and tokens."""

from __future__ import annotations

import os
from pathlib import Path

from playhead_receiver.auth.database import AccessFile
from playhead_receiver.storage import open_store, restore
from playhead_receiver.storage.api.maintenance import Backup
from playhead_receiver.storage.api.store import needed
from playhead_receiver.storage.sqlite.backup import make_empty
from playhead_receiver.storage.sqlite.schema import FILE
from playhead_receiver.tenants.tenants import FOLDER as TENANTS

DRAFT = "store.draft"


def back_up(place: str | Path, data_dir: Path, folder: Path) -> int:
    """Copy the store at ``place``, the tenants' stores and the tokens into ``folder``, new or empty.

    The stores are copied one after the other, each as one snapshot. The folder's own store is moved into
    place last. Returns how many large bodies are missing in the copies, because they are missing or
    damaged here. `StoreError`.
    """
    store = open_store(place, read_only=True)
    try:
        own = needed(store, Backup)
        make_empty(folder)
        missing = own.backup(folder / DRAFT)
    finally:
        store.close()
    for tenant in tenants_in(data_dir):
        store = open_store(data_dir / TENANTS / tenant, read_only=True)
        try:
            missing += needed(store, Backup).backup(folder / TENANTS / tenant)
        finally:
            store.close()
    file = AccessFile(data_dir)
    try:
        file.copy_to(folder)
    finally:
        file.close()
    for part in sorted((folder / DRAFT).iterdir(), key=lambda part: part.name == FILE):
        os.rename(part, folder / part.name)
    (folder / DRAFT).rmdir()
    return missing


def put_back(folder: Path, data_dir: Path) -> None:
    """Restore the stores of ``data_dir`` and its tokens from a backup, which is not changed.

    `StoreError` if ``folder`` is no backup, or if ``data_dir`` has a store already; `StoreBusy`.
    """
    restore(folder, data_dir)
    for tenant in tenants_in(folder):
        restore(folder / TENANTS / tenant, data_dir / TENANTS / tenant)
    file = AccessFile(data_dir)
    try:
        file.add_from(folder)
    finally:
        file.close()


def tenants_in(folder: Path) -> list[str]:
    """Names of the tenants that have a store below a data folder or a backup."""
    return sorted(found.parent.name for found in (folder / TENANTS).glob(f"*/{FILE}"))
