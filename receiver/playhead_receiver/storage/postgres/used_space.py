"""Measures the space that rows take: table files keep the space of deleted rows, even after VACUUM."""

from __future__ import annotations

from typing import Any

from playhead_receiver.storage.sql.tables.database import Db

ROW_BYTES = 28
"""Overhead of a row beside its values."""

_COLUMNS = (
    "SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
    " JOIN pg_namespace ON pg_namespace.oid = relnamespace"
    " WHERE nspname = ? AND relkind = 'r' AND attnum > 0 AND NOT attisdropped"
)


def used_by_rows(db: Db, schema: str) -> int:
    """Bytes of the rows of all tables, and a share of their indexes. Reads all rows, no long values."""
    tables: dict[str, list[str]] = {}
    for table, column in db.execute(_COLUMNS, (schema,)):
        tables.setdefault(table, []).append(column)
    used = 0.0
    for table, columns in tables.items():
        place = f'"{schema}".{table}'
        values = " + ".join(f"coalesce(pg_column_size({column}), 0)" for column in columns)
        rows, held, files, indexes = _first(
            db.execute(
                f"SELECT count(*), coalesce(sum({values}), 0)::bigint, pg_table_size('{place}'),"
                f" pg_indexes_size('{place}') FROM {place}"
            ).get
        )
        # Rows and indexes lose content alike, so the sizes of their files give the ratio of the two.
        used += (held + ROW_BYTES * rows) * (1 + indexes / max(files, 1))
    return round(used)


def _first(row: Any) -> tuple[int, int, int, int]:
    return row
