"""The SQLite databases of a run as they were at any moment, and the rows in them."""

from playhead_replay.databases.history import DatabaseHistory, DatabaseThen
from playhead_replay.databases.tables import Table, Value, plain_value, tables_of

__all__ = ["DatabaseHistory", "DatabaseThen", "Table", "Value", "plain_value", "tables_of"]
