"""Reads tables of an untrusted SQLite database from a tape.

The database is opened in memory, in a connection that can only read: no other file, no extension, no
trigger, no view, and only the functions needed for counting. Content that is too large or takes too long
is left out, with a reason.
"""

from __future__ import annotations

import base64
import math
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from playhead_replay.json_objects.recorded import TableItem

ROWS: Final = 100
"""Default number of rows that are read of a table."""

MOST_TABLES: Final = 200
MOST_COLUMNS: Final = 100
MOST_IMAGE_BYTES: Final = 64 << 20
MOST_VALUE_BYTES: Final = 1 << 20
MOST_TOTAL_BYTES: Final = 8 << 20
"""Total size of the values of all tables of a database."""

LONGEST: Final = 4096
"""Number of characters or bytes shown of a value."""

MOST_S: Final = 2.0
"""Time limit for all tables of a database, in seconds."""

REFUSALS: Final = (sqlite3.Error, OverflowError, MemoryError, UnicodeDecodeError)
"""`UnicodeDecodeError`: SQLite quotes bytes of the database that are not text."""

OPCODES: Final = 10_000
"""Steps of SQLite's machine between two looks at the clock."""

Value: TypeAlias = int | float | str | bytes | None


@dataclass(slots=True)
class Table:
    """A table: its first rows, in the order of the table."""

    name: str
    columns: list[str] = field(default_factory=list[str])
    rows: list[list[Value]] = field(default_factory=list[list[Value]])
    row_count: int | None = None
    """Number of all rows; None if they were not counted."""
    why: str = ""
    """What is not shown, and why; empty if only further rows are missing."""

    def to_json(self) -> TableItem:
        """As an object of plain values."""
        return {
            "name": self.name,
            "columns": self.columns,
            "rows": [[plain_value(value) for value in row] for row in self.rows],
            "row_count": self.row_count,
            "left_out": self.why or None,
        }


def tables_of(image: bytes, most_rows: int = ROWS) -> list[Table]:
    """Return the tables of a database, by name. ValueError if it cannot be read."""
    if not image:
        return []
    if len(image) > MOST_IMAGE_BYTES:
        raise ValueError(f"it has more than {MOST_IMAGE_BYTES >> 20} MiB")
    try:
        with closing(_opened(image)) as base:
            names = base.execute(
                "select name, sql from sqlite_master where type = 'table' and name not like 'sqlite!_%'"
                " escape '!' order by name limit ?",
                (MOST_TABLES + 1,),
            ).fetchall()
            room = [MOST_TOTAL_BYTES]
            found = [
                _table(base, str(name), str(sql), most_rows, room) for name, sql in names[:MOST_TABLES]
            ]
            if len(names) > MOST_TABLES:
                found.append(Table("…", why=f"it has more than {MOST_TABLES} tables"))
            return found
    except REFUSALS as problem:
        raise ValueError(f"the database cannot be read: {_why(problem)}") from problem


def _opened(image: bytes) -> sqlite3.Connection:
    base = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    base.text_factory = _text
    # Bytes 18 and 19 enable the write-ahead log, which does not exist in memory.
    base.deserialize(image[:18] + b"\x01\x01" + image[20:])
    for setting in ("trusted_schema = off", "cell_size_check = on", "query_only = on", "mmap_size = 0"):
        base.execute(f"pragma {setting}")
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
    base.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    ends_s = time.monotonic() + MOST_S
    base.set_authorizer(_may)
    base.set_progress_handler(lambda: time.monotonic() > ends_s, OPCODES)
    return base


def _may(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    allowed = (
        action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
        or (action == sqlite3.SQLITE_FUNCTION and second in ("count", "like"))
        or (action == sqlite3.SQLITE_PRAGMA and first == "table_xinfo")
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def plain_value(value: Value) -> Any:
    """Return a value for JSON: bytes as ``{"base64": …}``, numbers that JSON lacks as texts.

    >>> plain_value(b"ab"), plain_value(float("inf")), plain_value(None)
    ({'base64': 'YWI='}, 'inf', None)
    """
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _table(base: sqlite3.Connection, name: str, sql: str, most_rows: int, room: list[int]) -> Table:
    """Read one table. A problem is noted for this table only, and its first rows are kept."""
    found = Table(name)
    if sql.lstrip().lower().startswith("create virtual"):
        found.why = "virtual table: only its shadow tables are read"
        return found
    try:
        # Generated columns would execute expressions of the database.
        known = [
            str(row[1])
            for row in base.execute(f"pragma table_xinfo({_named(name)})")
            if row[6] in (0, 3)
        ]
        found.columns = known[:MOST_COLUMNS]
        if len(known) > MOST_COLUMNS:
            found.why = f"it has {len(known)} columns"
        if not found.columns:
            return found
        columns = ", ".join(map(_named, found.columns))
        for row in base.execute(f"select {columns} from {_named(name)} limit ?", (most_rows,)):
            values = [_cut(value) for value in row]
            room[0] -= sum(len(one) if isinstance(one, str | bytes) else 8 for one in values)
            if room[0] < 0:
                found.why = f"all tables together have more than {MOST_TOTAL_BYTES >> 20} MiB"
                return found
            found.rows.append(values)
        if len(found.rows) < most_rows:
            found.row_count = len(found.rows)
        else:
            [(found.row_count,)] = base.execute(f"select count(*) from {_named(name)}")
    except REFUSALS as problem:
        found.why = f"it cannot be read completely: {_why(problem)}"
    return found


def _why(problem: BaseException) -> str:
    return _text(problem.object) if isinstance(problem, UnicodeDecodeError) else str(problem)


def _cut(value: Value) -> Value:
    if isinstance(value, str) and len(value) > LONGEST:
        return value[:LONGEST] + "…"
    return value[:LONGEST] if isinstance(value, bytes) else value


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
