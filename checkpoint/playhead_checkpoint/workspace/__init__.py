"""Snapshots of a run's working folder: taken, compared, and laid out again."""

from __future__ import annotations

from collections.abc import Sequence

from playhead_checkpoint.workspace.taking import WorkingFolder


def open_workspace(folder: str, hidden: Sequence[str], limit_bytes: int) -> WorkingFolder:
    """Begin to take snapshots of a folder. The entry point ``playhead_workspace``."""
    return WorkingFolder(folder, hidden, limit_bytes)
