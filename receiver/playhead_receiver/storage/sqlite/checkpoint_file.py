"""The checkpoints of a store on SQLite: a file next to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from playhead_checkpoint.sqlite_file import empty_log_of
from playhead_receiver.storage.sql.checkpoint_location import CheckpointLocation

if TYPE_CHECKING:
    from playhead_checkpoint import SqliteCheckpoints

CHECKPOINTS = "checkpoints.sqlite"


class CheckpointFile(CheckpointLocation):
    """``checkpoints.sqlite`` of a data folder."""

    def __init__(self, data_dir: Path, *, read_only: bool) -> None:
        super().__init__()
        self.path = data_dir / CHECKPOINTS
        self._read_only = read_only
        self._file: SqliteCheckpoints | None = None

    def _exists(self) -> bool:
        return self.path.exists()

    def _open(self) -> SqliteCheckpoints:
        self._file = self._connected()
        return self._file

    def _connected(self) -> SqliteCheckpoints:
        from playhead_checkpoint import SqliteCheckpoints

        return SqliteCheckpoints(self.path, synchronous="FULL", read_only=self._read_only)

    def empty_log(self) -> bool:
        """Empty their log; False if a reader needs it. `StoreUnavailable`."""
        return empty_log_of(self.path)

    def give_back(self) -> None:
        """Return some free pages to the file system, if the file is open."""
        if self._opened is not None and self._file is not None:
            self._file.give_back()

    def copy_to(self, folder: Path) -> None:
        """Copy one snapshot of them into a folder, if there are any."""
        if self._exists():
            store = self._connected()
            try:
                store.copy_to(folder / CHECKPOINTS)
            finally:
                store.close()
