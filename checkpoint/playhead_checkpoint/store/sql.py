"""What the engines that speak SQL share: statements, deletion, verification."""

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
from playhead_checkpoint.tree.stored_nodes import all_roots, roots_of, stretched
from playhead_checkpoint.tree.types import TYPES, Types
from playhead_core.errors import CheckpointUnknown

_MOST_KNOWN: Final = 200_000
"""Digests of stored nodes that are remembered; about 30 MB."""
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
    """A `CheckpointStore` in tables. How often nodes are used is counted later (`store.deletion`)."""

    def __init__(self, types: Types = TYPES) -> None:
        super().__init__(types)
        self._lock = threading.RLock()
        self._deletions = -1
        self._counted = 0
        """Up to which checkpoint uses were counted, as far as is known here."""

    @abstractmethod
    def _using(self) -> AbstractContextManager[Session]:
        """The connection, for this thread alone; its errors as those of playhead."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Session]:
        """A transaction of one writer at a time; inside of another it is a part of that."""

    def transaction(self) -> AbstractContextManager[Session]:
        """A transaction of one writer at a time, for tables that stand beside these."""
        return self._writing()

    @abstractmethod
    def _at_once(self) -> AbstractContextManager[Session]:
        """A transaction of one statement that writes."""

    @abstractmethod
    def _insert(self, database: Session, fresh: Fresh) -> None:
        """Insert those nodes that are missing."""

    @abstractmethod
    def _insert_row(self, database: Session, statement: str, values: Sequence[Any]) -> int | None:
        """Insert a checkpoint. Its number; None: it was not inserted."""

    @abstractmethod
    def stored_bytes(self) -> int:
        """Bytes that the store takes, cheaply determined."""

    @abstractmethod
    def _tidy(self) -> None:
        """Give back what a deletion has freed."""

    @abstractmethod
    def _broken(self, database: Session) -> Iterator[str]:
        """What the database itself says is damaged."""

    # Reading

    def row(self, id: bytes) -> Row:
        """The row of an id. `CheckpointUnknown`."""
        with self._using() as database:
            found = _row_of(database, id)
        if found is None:
            raise CheckpointUnknown(f"there is no checkpoint {id.hex()[:64]}")
        return found

    def packed(self, id: bytes) -> Packed:
        """Read the packed state of an id. `CheckpointUnknown`."""
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
        """Nodes by digest, those that are there, not verified."""
        question = "SELECT digest, size, data FROM node WHERE digest IN "
        with self._using() as database:
            rows = answers(database, question, list(digests))
            return {digest: stretched(data, size) for digest, size, data in rows}

    def latest(self, run: bytes) -> Checkpoint | None:
        """The checkpoint of a run that was put last."""
        found = self.checkpoints(run, limit=1)
        return found[0] if found else None

    def checkpoints(
        self, run: bytes | None = None, *, before: bytes = b"", limit: int = 100
    ) -> list[Checkpoint]:
        """Checkpoints, those put last first; see `CheckpointStore.checkpoints`."""
        wanted, values = "1 = 1", list[Any]()
        if run is not None:
            wanted, values = "run = ?", [run]
        with self._reading() as database:
            if before:
                self.row(before)
                wanted += " AND seq < (SELECT seq FROM checkpoint WHERE id = ?)"
                values.append(before)
            question = f"SELECT {COLUMNS} FROM checkpoint WHERE {wanted} ORDER BY seq DESC LIMIT ?"
            return [
                read_row(row).checkpoint for row in database.execute(question, (*values, max(limit, 0)))
            ]

    def of_thread(self, thread: str, *, before: str = "", limit: int | None = None) -> list[Checkpoint]:
        """Checkpoints of a thread; see `CheckpointStore.of_thread`."""
        wanted, values = "thread = ? AND thread <> ''", [thread]
        if before:
            wanted, values = f"{wanted} AND name < ?", [thread, before]
        question = f"SELECT {COLUMNS} FROM checkpoint WHERE {wanted} ORDER BY name DESC LIMIT ?"
        with self._using() as database:
            rows = database.execute(question, (*values, _ALL if limit is None else max(limit, 0)))
            return [read_row(row).checkpoint for row in rows]

    def threads(self, start: str = "") -> list[str]:
        """The threads whose names start so, in order."""
        question = (
            "SELECT DISTINCT thread FROM checkpoint WHERE thread <> '' AND thread >= ? ORDER BY thread"
        )
        found: list[str] = []
        with self._using() as database:
            for (thread,) in database.execute(question, (start,)):
                if not thread.startswith(start):
                    break
                found.append(thread)
        return found

    def packed_notes(self, id: bytes) -> Mapping[str, bytes]:
        """The notes of a checkpoint, packed, in the order in which they came."""
        with self._using() as database:
            return dict(
                database.execute("SELECT key, packed FROM note WHERE checkpoint = ? ORDER BY id", (id,))
            )

    def count(self) -> int:
        """How many checkpoints there are."""
        with self._using() as database:
            return int(database.execute("SELECT count(*) FROM checkpoint").fetchone()[0])

    def runs(self) -> list[bytes]:
        """The runs that have checkpoints."""
        with self._using() as database:
            found = database.execute("SELECT DISTINCT run FROM checkpoint WHERE run <> ?", (b"",))
            return [run for (run,) in found.fetchall()]

    # Writing

    def _begun(self, database: Session, known: KnownNodes | None, id: bytes) -> bytes | None:
        """Forget what is known to be stored, where nodes were deleted since. `NodesGone`.

        What a checkpoint of that id has packed, if it is there.
        """
        question = (
            "SELECT deletions.count, counted.checkpoint, (SELECT packed FROM checkpoint WHERE id = ?) "
            "FROM deletions, counted"
        )
        deletions, self._counted, earlier = database.execute(question, (id,)).fetchone()
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
        """Keep packed notes and their nodes; see `CheckpointEngine.write_notes`."""
        with self._lock:
            self._learn(self._noted(notes))

    def _noted(self, notes: Notes) -> Iterable[bytes]:
        """Write those that are to be written. The nodes that are known now."""
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
            return () if again else stored  # where an old note stays, the new nodes are unused

    def write(self, put: Put) -> Row:
        """Keep a row and its nodes; see `CheckpointEngine.write`."""
        with self._lock:  # until what the transaction added is known
            stored, seq = self._stored_at_once(put) or self._written(put)
            if seq - self._counted >= MOST_UNCOUNTED:
                with self._writing() as database:
                    settle(database)
                self._counted = seq
        return stored

    def _stored_at_once(self, put: Put) -> tuple[Row, int] | None:
        """As `_written`, asking nothing; None: the checkpoint is not new, or nodes may be missing."""
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
        """The row that is stored, and its number."""
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
        """Insert the nodes that are missing. Nodes that are stored now.

        `NodesGone`: something that they or ``roots`` refer to is not there.
        """
        asked = self._unknown(fresh, roots)
        found = node_ids(database, asked) if asked else {}
        if len(found) < len(asked):
            raise NodesGone
        if fresh:
            self._insert(database, fresh)
        return fresh.keys() | found.keys()

    def _unknown(self, fresh: Fresh, roots: Iterable[bytes]) -> set[bytes]:
        """What these refer to and is neither one of them nor known to be stored."""
        used = set(roots)
        for node in fresh.values():
            used.update(map(_DIGEST, node.below))
        return used.difference(self._known.digests, fresh)

    # Deleting

    def delete(self, ids: Sequence[bytes]) -> Freed:
        """Delete checkpoints, and the nodes that nothing else uses. Unknown ids are passed over."""
        return self._deleted(lambda _: list(dict.fromkeys(ids)))

    def delete_run(self, run: bytes) -> Freed:
        """Delete the checkpoints of a run; see `CheckpointStore.delete_run`."""
        return self.delete_runs([run])

    def delete_runs(self, runs: Sequence[bytes]) -> Freed:
        """Delete the checkpoints of runs, as `delete_run`; what only these rest on goes, too."""
        return self._deleted(lambda database: not_needed_of(database, runs))

    def delete_strays(
        self, gone: Callable[[Collection[bytes]], Collection[bytes]], before_ns: int, most: int
    ) -> Freed:
        """Delete the oldest checkpoints that name no run, or one of those that ``gone`` gives of some.

        At most so many, and only those from before a time (nanoseconds since 1970, UTC). Those stay on
        which others rest.
        """
        return self._deleted(lambda database: strays(database, gone, before_ns, most))

    def _deleted(self, wanted_of: Callable[[Session], Sequence[bytes]]) -> Freed:
        with self._writing() as database:
            question = "SELECT id, packed FROM checkpoint WHERE id IN "
            rows = list(answers(database, question, wanted_of(database)))
            if not rows:
                return Freed()
            unused = settle(database)
            wanted = [id for id, _ in rows]
            said = list(answers(database, "SELECT id, packed FROM note WHERE checkpoint IN ", wanted))
            remove(database, "DELETE FROM checkpoint WHERE id = ?", wanted)
            remove(database, "DELETE FROM note WHERE id = ?", [id for id, _ in said])
            freed = settle(database, all_roots(packed for _, packed in rows + said))
        self._tidy()
        return Freed(len(rows), unused[0] + freed[0], unused[1] + freed[1])

    # Verifying

    def found_damages(self) -> Iterator[Damage]:
        """Read the whole store, and yield each damage as it is found."""
        with self._reading() as database:
            yield from (Damage("database", "checkpoints", line) for line in self._broken(database))
            yield from DamageSearch(database).damages()

    def _damages(self) -> Iterator[str]:
        return map(str, self.found_damages())


def _row_of(database: Session, id: bytes) -> Row | None:
    row = database.execute(f"SELECT {COLUMNS} FROM checkpoint WHERE id = ?", (id,)).fetchone()
    return None if row is None else read_row(row)
