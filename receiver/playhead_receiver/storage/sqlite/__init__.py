"""The SQLite engine: one file and a folder of blobs; one writer, and readers in any process."""

from playhead_receiver.storage.sqlite.engine import SqliteStore

__all__ = ["SqliteStore"]
