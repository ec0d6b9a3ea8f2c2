"""Restorable state, addressed by its content: checkpoints, and the blobs of large bodies."""

from playhead_checkpoint.blobs import BlobFolder
from playhead_checkpoint.store.protocol import Checkpoint, CheckpointStore, Freed, Lineage
from playhead_checkpoint.store.sqlite import SqliteCheckpoints
from playhead_checkpoint.values.difference import StateChange
from playhead_checkpoint.values.types import TYPES, Types, Unregistered, register

__all__ = [
    "TYPES",
    "BlobFolder",
    "Checkpoint",
    "CheckpointStore",
    "Freed",
    "Lineage",
    "SqliteCheckpoints",
    "StateChange",
    "Types",
    "Unregistered",
    "register",
]
