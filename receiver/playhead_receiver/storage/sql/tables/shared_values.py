"""Values that many spans share (resources, labels): stored once with a count of uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playhead_receiver.storage.sql.tables.database import Db, Row, Statement
from playhead_receiver.storage.values.span_labels import DerivedCall
from playhead_receiver.storage.writing.prepare import encode_label, short_digest


class SharedTable:
    """The table ``resource`` or ``label``, as an engine has it."""

    def __init__(self, name: str, *, keyed: bool) -> None:
        """``keyed``: rows are found by a digest in their column ``key``; else by the value itself."""
        self.name = name
        self._keyed = keyed
        key = self._key = "key" if keyed else "data"
        self._columns = ("key", "data") if keyed else ("data",)
        self.find = Statement(
            f"{key}:bytes", f"SELECT {key}, id FROM {name} WHERE {key} IN (SELECT {key} FROM new)"
        )
        """Ids by key."""
        self.add = Statement(
            " ".join(f"{column}:bytes" for column in self._columns),
            f"INSERT INTO {name}({', '.join(self._columns)}, uses)"
            " SELECT *, 0 FROM new WHERE true ON CONFLICT DO NOTHING",
        )
        """Inserts values that are new, without uses."""

    def key_of(self, value: bytes) -> bytes:
        """The key by which a value is found."""
        return short_digest(value) if self._keyed else value

    def row_of(self, value: bytes) -> Row:
        """The row of a value for `add`."""
        return (short_digest(value), value) if self._keyed else (value,)

    def put(self, db: Db, value: bytes) -> int:
        """The id of a value, which is inserted without uses if it is new."""
        sql = f"SELECT id FROM {self.name} WHERE {self._key} = ?"
        found: Any = db.execute(sql, (self.key_of(value),)).get
        if found is None:
            marks = ", ".join("?" * len(self._columns))
            db.execute(
                f"INSERT INTO {self.name}({', '.join(self._columns)}, uses) VALUES ({marks}, 0)",
                self.row_of(value),
            )
            found = db.execute(sql, (self.key_of(value),)).get
        return int(found)


RESOURCES = SharedTable("resource", keyed=True)


def release(db: Db, trace_id: bytes) -> None:
    """Subtract the references of a trace's spans and log records, which are about to be deleted."""
    for table, users in (("resource", "span"), ("label", "span"), ("resource", "log")):
        rows: Any = db.execute(
            f"SELECT {table}, count(*) FROM {users} WHERE trace_id = ? GROUP BY {table}", (trace_id,)
        )
        for row, count in list(rows):
            count_out(db, table, row, count)


def count_out(db: Db, table: str, row: int, count: int) -> bool:
    """Subtract ``count`` references; delete the row if none are left. Whether it was deleted."""
    if count:
        db.execute(f"UPDATE {table} SET uses = uses - ? WHERE id = ?", (count, row))
    db.execute(f"DELETE FROM {table} WHERE id = ? AND uses <= 0", (row,))
    return bool(db.changes())


def put(db: Db, trace_id: bytes, found: Mapping[bytes, DerivedCall], labels: SharedTable) -> int:
    """Change the rows of those spans that exist; return how many."""
    changed = 0
    for span_id, derived in found.items():
        before: Any = db.execute(
            "SELECT label FROM span WHERE trace_id = ? AND span_id = ?", (trace_id, span_id)
        ).get
        if before is None:
            continue
        after, usage = labels.put(db, encode_label(derived.label)), derived.usage
        db.execute(
            "UPDATE span SET label = ?, input = ?, cached = ?, cache_write = ?, output = ?,"
            " reasoning = ? WHERE trace_id = ? AND span_id = ?",
            (
                after,
                usage.input,
                usage.cached,
                usage.cache_write,
                usage.output,
                usage.reasoning,
                trace_id,
                span_id,
            ),
        )
        db.execute("UPDATE label SET uses = uses + 1 WHERE id = ?", (after,))
        count_out(db, "label", before, 1)
        changed += 1
    if changed:
        db.execute("UPDATE counter SET bundle = bundle + 1")  # see `StoreVersion`
        db.execute(
            "UPDATE run SET stale = (SELECT position FROM counter) WHERE trace_id = ?", (trace_id,)
        )
    return changed
