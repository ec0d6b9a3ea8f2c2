"""The SQLite databases of a run at any time, and their rows."""

from playhead_replay.databases.history import DatabaseHistory, DatabaseState
from playhead_replay.databases.tables import Table, Value, plain_value, tables_of

__all__ = ["DatabaseHistory", "DatabaseState", "Table", "Value", "plain_value", "tables_of"]
