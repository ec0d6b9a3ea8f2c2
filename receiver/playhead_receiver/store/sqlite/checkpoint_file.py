"""The checkpoints of a store on SQLite: a file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from playhead_receiver.store.sql.checkpoint_place import CheckpointPlace

if TYPE_CHECKING:
    from playhead_checkpoint import SqliteCheckpoints

CHECKPOINTS = "checkpoints.sqlite"


class CheckpointFile(CheckpointPlace):
    """``checkpoints.sqlite`` of a data folder."""

    def __init__(self, data_dir: Path, *, read_only: bool) -> None:
        super().__init__()
        self._path = data_dir / CHECKPOINTS
        self._read_only = read_only

    def _is_there(self) -> bool:
        return self._path.exists()

    def _open(self) -> SqliteCheckpoints:
        from playhead_checkpoint import SqliteCheckpoints

        return SqliteCheckpoints(self._path, synchronous="FULL", read_only=self._read_only)

    def copy_to(self, folder: Path) -> None:
        """Copy one state of them into a folder, where there are any."""
        if self._is_there():
            store = self._open()
            try:
                store.copy_to(folder / CHECKPOINTS)
            finally:
                store.close()
