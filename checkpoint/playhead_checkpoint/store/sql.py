"""The base of the SQL engines: statements, deletion, verification."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import Any, Final

from playhead_checkpoint.store.damages import Damage, DamageSearch
from playhead_checkpoint.store.deletion import (
    MOST_UNCOUNTED,
    node_ids,
    not_needed_of,
    remove,
    settle,
    strays,
)
from playhead_checkpoint.store.engine import (
    CheckpointEngine,
    Fresh,
    KnownNodes,
    NodesGone,
    Notes,
    Packed,
    Put,
    Row,
)
from playhead_checkpoint.store.protocol import Checkpoint, Freed
from playhead_checkpoint.store.rows import COLUMNS, Session, answers, read_row, row_values
from playhead_checkpoint.tree.nodes import damaged
from playhead_checkpoint.tree.stored_nodes import all_roots, decompressed, roots_of
from playhead_checkpoint.tree.types import TYPES, Types
from playhead_core.errors import CheckpointUnknown

_MOST_KNOWN: Final = 200_000
"""Largest number of remembered digests of stored nodes; about 30 MB."""
_ALL: Final = (1 << 63) - 1
_DIGEST: Final = attrgetter("digest")
_WIDTH: Final = len(COLUMNS.split(","))
_QUALIFIED: Final = ", ".join(f"checkpoint.{name.strip()}" for name in COLUMNS.split(","))
_WITHOUT_NOTES: Final = (
    f"SELECT {COLUMNS}, EXISTS (SELECT 1 FROM note WHERE note.checkpoint = checkpoint.id) "
    "FROM checkpoint WHERE id = ?"
)
_WITH_NOTES: Final = (
    f"SELECT {_QUALIFIED}, key, note.packed FROM checkpoint "
    "LEFT JOIN note ON note.checkpoint = checkpoint.id WHERE checkpoint.id = ? ORDER BY note.id"
)
_PLACES: Final = ", ".join("?" * _WIDTH)
_INSERT: Final = f"INSERT INTO checkpoint ({COLUMNS}) VALUES ({_PLACES})"
_INSERT_NEW: Final = (  # of an id that is not there, when nothing was deleted since
    f"INSERT INTO checkpoint ({COLUMNS}) SELECT {_PLACES} FROM deletions WHERE count = ? "
    "ON CONFLICT (id) DO NOTHING"
)


class SqlCheckpoints(CheckpointEngine):
    """A `CheckpointStore` in tables. Uses of nodes are counted later (`store.deletion`)."""

    def __init__(self, types: Types = TYPES) -> None:
        super().__init__(types)
        self._lock = threading.RLock()
        self._deletions = -1
        self._counted = 0
        """The last checkpoint whose uses are counted, as far as this process knows."""

    @abstractmethod
    def _using(self) -> AbstractContextManager[Session]:
        """Hold the connection for this thread; translate its errors."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Session]:
        """A transaction of one writer at a time; a nested one is part of the outer one."""

    def transaction(self) -> AbstractContextManager[Session]:
        """A transaction of one writer at a time, also for other tables in the same database."""
        return self._writing()

    @abstractmethod
    def _at_once(self) -> AbstractContextManager[Session]:
        """A transaction of a single writing statement."""

    @abstractmethod
    def _insert(self, database: Session, fresh: Fresh) -> None:
        """Insert the nodes that are missing."""

    @abstractmethod
    def _insert_row(self, database: Session, statement: str, values: Sequence[Any]) -> int | None:
        """Insert a checkpoint. Returns its number, or None if it was not inserted."""

    @abstractmethod
    def stored_bytes(self) -> int:
        """Return the size of the store in bytes, determined cheaply."""

    @abstractmethod
    def _tidy(self) -> None:
        """Return the space that a deletion has freed."""

    @abstractmethod
    def _broken(self, database: Session) -> Iterator[str]:
        """Yield damages that the database itself reports."""

    # Reading

    def row(self, id: bytes) -> Row:
        """Return the row with an id. `CheckpointUnknown`."""
        with self._using() as database:
            found = _row_of(database, id)
        if found is None:
            raise CheckpointUnknown(f"there is no checkpoint {id.hex()[:64]}")
        return found

    def packed(self, id: bytes) -> Packed:
        """Read a row and its packed notes. `CheckpointUnknown`."""
        with self._using() as database:
            row = database.execute(_WITHOUT_NOTES, (id,)).fetchone()
            if row is None:
                raise CheckpointUnknown(f"there is no checkpoint {id.hex()[:64]}")
            *columns, noted = row
            if not noted:
                return Packed(read_row(columns), {})
            rows = database.execute(_WITH_NOTES, (id,)).fetchall()  # both as they are at one time
        if not rows:
            raise CheckpointUnknown(f"there is no checkpoint {id.hex()[:64]}")
        notes = {key: packed for *_, key, packed in rows if key is not None}
        return Packed(read_row(rows[0][:_WIDTH]), notes)

    def nodes(self, digests: Collection[bytes]) -> Mapping[bytes, bytes]:
        """Return the existing nodes by digest, not verified."""
        query = "SELECT digest, size, data FROM node WHERE digest IN "
        with self._using() as database:
            rows = answers(database, query, list(digests))
            return {digest: decompressed(data, size) for digest, size, data in rows}

    def latest(self, run: bytes) -> Checkpoint | None:
        """Return the checkpoint of a run that was stored last."""
        found = self.checkpoints(run, limit=1)
        return found[0] if found else None

    def checkpoints(
        self, run: bytes | None = None, *, before: bytes = b"", limit: int = 100
    ) -> list[Checkpoint]:
        """Return checkpoints, the newest first; see `CheckpointStore.checkpoints`."""
        wanted, values = "1 = 1", list[Any]()
        if run is not None:
            wanted, values = "run = ?", [run]
        with self._reading() as database:
            if before:
                self.row(before)
                wanted += " AND seq < (SELECT seq FROM checkpoint WHERE id = ?)"
                values.append(before)
            query = f"SELECT {COLUMNS} FROM checkpoint WHERE {wanted} ORDER BY seq DESC LIMIT ?"
            return [
                read_row(row).checkpoint for row in database.execute(query, (*values, max(limit, 0)))
            ]

    def of_thread(self, thread: str, *, before: str = "", limit: int | None = None) -> list[Checkpoint]:
        """Return checkpoints of a thread; see `CheckpointStore.of_thread`."""
        wanted, values = "thread = ? AND thread <> ''", [thread]
        if before:
            wanted, values = f"{wanted} AND name < ?", [thread, before]
        query = f"SELECT {COLUMNS} FROM checkpoint WHERE {wanted} ORDER BY name DESC LIMIT ?"
        with self._using() as database:
            rows = database.execute(query, (*values, _ALL if limit is None else max(limit, 0)))
            return [read_row(row).checkpoint for row in rows]

    def threads(self, start: str = "") -> list[str]:
        """Return the threads whose names begin with ``start``, sorted."""
        query = (
            "SELECT DISTINCT thread FROM checkpoint WHERE thread <> '' AND thread >= ? ORDER BY thread"
        )
        found: list[str] = []
        with self._using() as database:
            for (thread,) in database.execute(query, (start,)):
                if not isinstance(thread, str):
                    raise damaged("a thread that is no text")
                if not thread.startswith(start):
                    break
                found.append(thread)
        return found

    def packed_notes(self, id: bytes) -> Mapping[str, bytes]:
        """Return the packed notes of a checkpoint, in the order in which they were added."""
        with self._using() as database:
            return dict(
                database.execute("SELECT key, packed FROM note WHERE checkpoint = ? ORDER BY id", (id,))
            )

    def count(self) -> int:
        """Return the number of checkpoints."""
        with self._using() as database:
            return int(database.execute("SELECT count(*) FROM checkpoint").fetchone()[0])

    def runs(self) -> list[bytes]:
        """Return the runs that have checkpoints."""
        with self._using() as database:
            found = database.execute("SELECT DISTINCT run FROM checkpoint WHERE run <> ?", (b"",))
            return [run for (run,) in found.fetchall()]

    # Writing

    def _begun(self, database: Session, known: KnownNodes | None, id: bytes) -> bytes | None:
        """Forget which nodes are stored if nodes were deleted since. `NodesGone`.

        Returns the packed state of the checkpoint with this id, if it exists.
        """
        query = (
            "SELECT deletions.count, counted.checkpoint, (SELECT packed FROM checkpoint WHERE id = ?) "
            "FROM deletions, counted"
        )
        deletions, self._counted, earlier = database.execute(query, (id,)).fetchone()
        if deletions != self._deletions:
            if self._deletions >= 0:
                self._known = KnownNodes()
            self._deletions = deletions
        if known is not None and known is not self._known:
            raise NodesGone
        return earlier

    def _learn(self, stored: Iterable[bytes]) -> None:
        if len(self._known.digests) > _MOST_KNOWN:
            self._known = KnownNodes()
        self._known.digests.update(stored)

    def write_notes(self, notes: Notes) -> None:
        """Write packed notes and their nodes; see `CheckpointEngine.write_notes`."""
        with self._lock:
            self._learn(self._noted(notes))

    def _noted(self, notes: Notes) -> Iterable[bytes]:
        """Write new or replaced notes. Returns the digests that are known to be stored now."""
        with self._writing() as database:
            self._begun(database, notes.known, notes.id)
            there = self.packed_notes(notes.id)
            again = notes.packed.keys() & there.keys()
            if again and notes.replace:
                settle(database)
            wanted = {
                key: packed for key, packed in notes.packed.items() if notes.replace or key not in there
            }
            database.executemany(
                "INSERT INTO note (checkpoint, key, packed) VALUES (?, ?, ?) "
                "ON CONFLICT (checkpoint, key) DO UPDATE SET packed = excluded.packed",
                [(notes.id, key, packed) for key, packed in wanted.items()],
            )
            stored = self._added(database, notes.fresh, all_roots(wanted.values()))
            if again and notes.replace:
                before, after = ([one[key] for key in again] for one in (there, wanted))
                settle(database, all_roots(before), all_roots(after))
            return () if again else stored  # if an old note stays, the new nodes are unused

    def write(self, put: Put) -> Row:
        """Write a row and its nodes; see `CheckpointEngine.write`."""
        with self._lock:  # until `_known` has what the transaction added
            stored, seq = self._stored_at_once(put) or self._written(put)
            if seq - self._counted >= MOST_UNCOUNTED:
                with self._writing() as database:
                    settle(database)
                self._counted = seq
        return stored

    def _stored_at_once(self, put: Put) -> tuple[Row, int] | None:
        """As `_written`, without queries; None if the checkpoint is not new or nodes may be missing."""
        row, fresh, known, _, roots = put
        if known is not self._known or roots is None:
            return None
        if self._unknown(fresh, roots) if fresh else not self._known.digests.issuperset(roots):
            return None
        values = (*row_values(row), self._deletions)
        with self._writing() if fresh else self._at_once() as database:
            seq = self._insert_row(database, _INSERT_NEW, values)
            if seq is None:
                return None
            if fresh:
                self._insert(database, fresh)
        if fresh:
            self._learn(fresh)
        return row, seq

    def _written(self, put: Put) -> tuple[Row, int]:
        """Write a row. Returns the stored row and its number."""
        row, id = put.row, put.row.checkpoint.id
        with self._writing() as database:
            earlier = self._begun(database, put.known, id)
            if earlier is not None:
                if not put.replace:
                    return self.row(id), 0
                settle(database)
                remove(database, "DELETE FROM checkpoint WHERE id = ?", [id])
            seq = self._insert_row(database, _INSERT, row_values(row))
            roots = roots_of(row.packed) if put.roots is None else put.roots
            stored = self._added(database, put.fresh, roots)
            if earlier is not None:
                settle(database, roots_of(earlier))
        if earlier is None:
            self._learn(stored)
        return row, seq or 0

    def _added(self, database: Session, fresh: Fresh, roots: Iterable[bytes]) -> Collection[bytes]:
        """Insert missing nodes. Returns the digests that are stored now.

        `NodesGone` if they or ``roots`` refer to a node that does not exist.
        """
        asked = self._unknown(fresh, roots)
        found = node_ids(database, asked) if asked else {}
        if len(found) < len(asked):
            raise NodesGone
        if fresh:
            self._insert(database, fresh)
        return fresh.keys() | found.keys()

    def _unknown(self, fresh: Fresh, roots: Iterable[bytes]) -> set[bytes]:
        """Return the referenced digests that are neither in ``fresh`` nor known to be stored."""
        used = set(roots)
        for node in fresh.values():
            used.update(map(_DIGEST, node.below))
        return used.difference(self._known.digests, fresh)

    # Deleting

    def delete(self, ids: Sequence[bytes]) -> Freed:
        """Delete checkpoints and nodes that are no longer used. Unknown ids are ignored."""
        return self._deleted(lambda _: list(dict.fromkeys(ids)))

    def delete_run(self, run: bytes) -> Freed:
        """Delete the checkpoints of a run; see `CheckpointStore.delete_run`."""
        return self.delete_runs([run])

    def delete_runs(self, runs: Sequence[bytes]) -> Freed:
        """Delete the checkpoints of runs as `delete_run`, and those that only they need."""
        return self._deleted(lambda database: not_needed_of(database, runs))

    def delete_strays(
        self, gone: Callable[[Collection[bytes]], Collection[bytes]], before_ns: int, most: int
    ) -> Freed:
        """Delete the oldest checkpoints without a run, or of a run that no longer exists.

        ``gone``: returns which of some runs no longer exist. At most ``most`` checkpoints from before
        ``before_ns`` (nanoseconds since 1970, UTC). Checkpoints that others need stay.
        """
        return self._deleted(lambda database: strays(database, gone, before_ns, most))

    def _deleted(self, wanted_of: Callable[[Session], Sequence[bytes]]) -> Freed:
        with self._writing() as database:
            query = "SELECT id, packed FROM checkpoint WHERE id IN "
            rows = list(answers(database, query, wanted_of(database)))
            if not rows:
                return Freed()
            unused = settle(database)
            wanted = [id for id, _ in rows]
            notes = list(answers(database, "SELECT id, packed FROM note WHERE checkpoint IN ", wanted))
            remove(database, "DELETE FROM checkpoint WHERE id = ?", wanted)
            remove(database, "DELETE FROM note WHERE id = ?", [id for id, _ in notes])
            freed = settle(database, all_roots(packed for _, packed in rows + notes))
        self._tidy()
        return Freed(len(rows), unused[0] + freed[0], unused[1] + freed[1])

    # Verifying

    def found_damages(self) -> Iterator[Damage]:
        """Read the whole store and yield each damage."""
        with self._reading() as database:
            yield from (Damage("database", "checkpoints", line) for line in self._broken(database))
            yield from DamageSearch(database).damages()

    def _damages(self) -> Iterator[str]:
        return map(str, self.found_damages())


def _row_of(database: Session, id: bytes) -> Row | None:
    row = database.execute(f"SELECT {COLUMNS} FROM checkpoint WHERE id = ?", (id,)).fetchone()
    return None if row is None else read_row(row)
