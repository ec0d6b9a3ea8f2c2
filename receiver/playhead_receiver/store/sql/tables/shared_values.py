"""Values that many spans share: stored once, with a reference count, deleted with the last reference."""

from __future__ import annotations

from typing import Any

from playhead_receiver.store.sql.database import Db

REMEMBERED = 4096


class Shared:
    """The rows of ``table``, which is ``resource`` or ``label``. Used by the writer."""

    def __init__(self, connection: Db, table: str) -> None:
        self._db = connection
        self._key = "key" if table == "resource" else "data"
        self._table = table
        self._rows: dict[bytes, int] = {}
        self._uses: dict[int, int] = {}

    def forget(self) -> None:
        """Discard everything, also counts that were not written yet."""
        self._rows.clear()
        self._uses.clear()

    def row(self, key: bytes, data: bytes | None) -> int:
        """The row of a value, inserted if it is new. ``data``: None if the key is the whole value."""
        row = self._rows.get(key)
        if row is None:
            columns, values = f"{self._key}, uses", (key, 0)
            if data is not None:
                columns, values = f"{self._key}, data, uses", (key, data, 0)
            self._db.execute(
                f"INSERT INTO {self._table}({columns}) VALUES ({', '.join('?' * len(values))})"
                " ON CONFLICT DO NOTHING",
                values,
            )
            found: Any = self._db.execute(
                f"SELECT id FROM {self._table} WHERE {self._key} = ?", (key,)
            ).get
            if len(self._rows) >= REMEMBERED:
                self._rows.clear()
            row = self._rows[key] = int(found)
            self.use(row, 0)
        return row

    def use(self, row: int, count: int = 1) -> None:
        """Note that ``count`` more spans refer to the row."""
        self._uses[row] = self._uses.get(row, 0) + count

    def write_uses(self) -> None:
        """Write the counts, once per transaction, before it ends. Delete rows without references."""
        for row, count in self._uses.items():
            if count > 0:
                self._db.execute(f"UPDATE {self._table} SET uses = uses + ? WHERE id = ?", (count, row))
            elif count_out(self._db, self._table, row, -count):
                self._rows.clear()
        self._uses.clear()


def release(db: Db, trace_id: bytes) -> None:
    """Subtract the references of a trace's spans, which are about to be deleted."""
    for table in ("resource", "label"):
        rows: Any = db.execute(
            f"SELECT {table}, count(*) FROM span WHERE trace_id = ? GROUP BY {table}", (trace_id,)
        )
        for row, count in list(rows):
            count_out(db, table, row, count)


def count_out(db: Db, table: str, row: int, count: int) -> bool:
    """Subtract ``count`` references; delete the row if none are left. Whether it was deleted."""
    if count:
        db.execute(f"UPDATE {table} SET uses = uses - ? WHERE id = ?", (count, row))
    db.execute(f"DELETE FROM {table} WHERE id = ? AND uses <= 0", (row,))
    return bool(db.changes())
