"""A data folder copied while it is written to, and put back: stores of all tenants, and tokens."""

from __future__ import annotations

import os
from pathlib import Path

from playhead_receiver.access.database import AccessFile
from playhead_receiver.access.tenants import FOLDER as TENANTS
from playhead_receiver.store import open_store, restore
from playhead_receiver.store.sqlite.backup import make_empty
from playhead_receiver.store.sqlite.schema import FILE

DRAFT = "store.draft"


def back_up(place: str | Path, data_dir: Path, folder: Path) -> int:
    """Copy the store at ``place`` and what else lies in ``data_dir`` into ``folder``, new or empty.

    Each store is copied as it is at one moment, one after the other; that of the folder itself is put in
    place last. How many large bodies are missing in them, as they are here. `StoreError`.
    """
    store = open_store(place, read_only=True)
    try:
        make_empty(folder)
        missing = store.backup(folder / DRAFT)
    finally:
        store.close()
    for tenant in tenants_in(data_dir):
        store = open_store(data_dir / TENANTS / tenant, read_only=True)
        try:
            missing += store.backup(folder / TENANTS / tenant)
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
    """Make of a backup, which stays as it is, the stores of ``data_dir``, and let its tokens in again.

    `StoreError` if ``folder`` is none, or something is stored in ``data_dir`` already; `StoreBusy`.
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
