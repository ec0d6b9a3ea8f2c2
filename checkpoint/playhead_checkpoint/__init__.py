"""Restorable state, addressed by its content: checkpoints, and the blobs of large bodies."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from playhead_checkpoint.blobs import BlobFolder

if TYPE_CHECKING:
    from playhead_checkpoint.store.postgres import PostgresCheckpoints
    from playhead_checkpoint.store.protocol import (
        Checkpoint,
        CheckpointStore,
        Contents,
        Freed,
        Lineage,
    )
    from playhead_checkpoint.store.remote import RemoteCheckpoints
    from playhead_checkpoint.store.sqlite import SqliteCheckpoints
    from playhead_checkpoint.tree.difference import StateChange
    from playhead_checkpoint.tree.types import TYPES, Types, Unregistered, register

__all__ = [
    "TYPES",
    "BlobFolder",
    "Checkpoint",
    "CheckpointStore",
    "Contents",
    "Freed",
    "Lineage",
    "PostgresCheckpoints",
    "RemoteCheckpoints",
    "SqliteCheckpoints",
    "StateChange",
    "Types",
    "Unregistered",
    "register",
]

_PLACES = {
    "store.protocol": ("Checkpoint", "CheckpointStore", "Contents", "Freed", "Lineage"),
    "store.postgres": ("PostgresCheckpoints",),
    "store.remote": ("RemoteCheckpoints",),
    "store.sqlite": ("SqliteCheckpoints",),
    "tree.difference": ("StateChange",),
    "tree.types": ("TYPES", "Types", "Unregistered", "register"),
}


def __getattr__(name: str) -> Any:
    """Import the name that is asked for. A program that uses blobs alone never loads the store."""
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"playhead_checkpoint.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
