"""Process instances in the tables: what is known about each, and which of its facts are stored."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import apsw

from playhead_receiver.store.runs.summary_fold import HEARTBEAT_NS
from playhead_receiver.store.sql.tables.chain_links import promised
from playhead_receiver.store.writing.known_instances import COLUMNS, Instance, recall, said_by


class Instances:
    """Rows of instances, cached between commits until `forget`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._db = connection
        self._known: dict[bytes, Instance] = {}

    def forget(self) -> None:
        """Empty the cache: rows are read again when they are needed."""
        self._known.clear()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, instance: bytes) -> Instance:
        """What is known about an instance. Inserts its row if it has none."""
        known = self._known.get(instance)
        if known is not None:
            return known
        row: Any = self._db.execute(
            f"SELECT {COLUMNS} FROM instance WHERE instance = ?", (instance,)
        ).get
        if row is None:
            self._db.execute(
                "INSERT INTO instance VALUES (NULL, ?, NULL, x'', x'', '', 0, 0, ?, 0, 0, -1)",
                (instance, HEARTBEAT_NS),
            )
            known = Instance(self._db.last_insert_rowid(), None)
        else:
            known = recall(row)
            for first, last in self._db.execute(
                "SELECT first, last FROM fact_range WHERE instance = ? ORDER BY first", (known.row,)
            ):
                known.firsts.append(int(first))  # type: ignore[arg-type]
                known.lasts.append(int(last))  # type: ignore[arg-type]
            self._recall_chain(known)
            known.serves = bool(
                self._db.execute("SELECT 1 FROM strand WHERE instance = ? LIMIT 1", (known.row,)).get
            )
        self._known[instance] = known
        return known

    def _recall_chain(self, known: Instance) -> None:
        found: Any = self._db.execute(
            "SELECT last.number, last.link, first.brought FROM link AS last JOIN link AS first"
            " ON first.instance = last.instance AND first.number = 0"
            " WHERE last.instance = ? ORDER BY last.number DESC LIMIT 1",
            (known.row,),
        ).get
        if found is None:
            return
        number, known.tip, brought = found
        known.links = number + 1
        known.promised = promised(self._db, known.row) if brought else []

    def set_resource(self, instance: bytes, resource: bytes) -> None:
        """Store the OTLP resource of an instance, unless it has one already."""
        known = self.get(instance)
        if known.resource is None:
            known.resource = resource
            self._db.execute("UPDATE instance SET resource = ? WHERE id = ?", (resource, known.row))

    def extend_range(self, known: Instance, first: int, last: int) -> None:
        """Add a new range of numbers, joined with adjacent ranges."""
        place = bisect_right(known.firsts, first)
        joins_before = place > 0 and known.lasts[place - 1] == first - 1
        joins_after = place < len(known.firsts) and known.firsts[place] == last + 1
        if joins_after:
            last = known.lasts[place]
            self._db.execute(
                "DELETE FROM fact_range WHERE instance = ? AND first = ?",
                (known.row, known.firsts[place]),
            )
            del known.firsts[place], known.lasts[place]
        if joins_before:
            known.lasts[place - 1] = last
            self._db.execute(
                "UPDATE fact_range SET last = ? WHERE instance = ? AND first = ?",
                (last, known.row, known.firsts[place - 1]),
            )
        else:
            known.firsts.insert(place, first)
            known.lasts.insert(place, last)
            self._db.execute("INSERT INTO fact_range VALUES (?, ?, ?)", (known.row, first, last))

    def save(self, known: Instance) -> None:
        """Write the row of an instance."""
        self._db.execute(
            "UPDATE instance SET trace_id = ?, span_id = ?, agent = ?, started_ns = ?, seen_ns = ?,"
            " heartbeat_ns = ?, exited = ?, failed = ?, last_seq = ? WHERE id = ?",
            (*said_by(known), known.row),
        )
