"""Snapshots of a run's working folder: taking, comparing and restoring them."""

from __future__ import annotations

from collections.abc import Sequence

from playhead_checkpoint.workspace.taking import WorkingFolder


def open_workspace(folder: str, hidden: Sequence[str], limit_bytes: int) -> WorkingFolder:
    """Return a taker of snapshots of a folder. The entry point ``playhead_workspace``."""
    return WorkingFolder(folder, hidden, limit_bytes)
