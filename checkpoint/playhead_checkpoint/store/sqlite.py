"""Checkpoints in one SQLite file."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast

from playhead_checkpoint.store.engine import (
    KINDS,
    CheckpointEngine,
    Fresh,
    Known,
    NodesGone,
    Notes,
    Packed,
    Put,
    Row,
    verified,
)
from playhead_checkpoint.store.protocol import Checkpoint, Freed, Lineage
from playhead_checkpoint.store.stored_nodes import squeezed, stretched
from playhead_checkpoint.values import nodes
from playhead_checkpoint.values.types import TYPES, Types
from playhead_semconv.errors import CheckpointUnknown, CorruptTape, StoreUnavailable

_VERSION: Final = 1
_APPLICATION: Final = 0x70636B31  # "pck1"
_WAIT_S: Final = 60.0
_AT_ONCE: Final = 500
"""Nodes per question."""
_MOST_KNOWN: Final = 200_000
"""Digests of stored nodes that are remembered; about 30 MB."""

_SCHEMA: Final = """
CREATE TABLE node (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE TABLE uses (node INTEGER PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE checkpoint (
    seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE,
    run BLOB NOT NULL, span BLOB NOT NULL, kind TEXT NOT NULL, parent BLOB NOT NULL,
    time_ns INTEGER NOT NULL, labels TEXT NOT NULL, thread TEXT NOT NULL, name TEXT NOT NULL,
    size INTEGER NOT NULL, digest BLOB NOT NULL, packed BLOB NOT NULL
);
CREATE INDEX checkpoint_of_run ON checkpoint (run, seq) WHERE run <> x'';
CREATE INDEX checkpoint_of_thread ON checkpoint (thread, name) WHERE thread <> '';
CREATE TABLE note (
    id INTEGER PRIMARY KEY, checkpoint BLOB NOT NULL, key TEXT NOT NULL, packed BLOB NOT NULL,
    UNIQUE (checkpoint, key)
);
CREATE TABLE deletions (count INTEGER NOT NULL);
INSERT INTO deletions VALUES (0);
"""
_COLUMNS: Final = "id, run, span, kind, parent, time_ns, labels, thread, name, size, digest, packed"
_WIDTH: Final = len(_COLUMNS.split(","))
_QUALIFIED: Final = ", ".join(f"checkpoint.{name.strip()}" for name in _COLUMNS.split(","))
_BYTES: Final = {bytes}
_INSERT: Final = f"INSERT INTO checkpoint ({_COLUMNS}) VALUES ({', '.join('?' * _WIDTH)})"
_INSERT_NODE: Final = "INSERT INTO node (digest, size, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


class _Use:
    """Holds a connection for one thread. Many small reads go through it: it is no generator."""

    def __init__(
        self, path: Path, lock: threading.RLock, connection: Callable[[], sqlite3.Connection]
    ) -> None:
        self._path = path
        self._lock = lock
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            return self._connection()
        except BaseException as problem:
            self.__exit__(type(problem), problem, None)
            raise

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        self._lock.release()
        if isinstance(problem, sqlite3.DatabaseError) and not isinstance(
            problem, sqlite3.OperationalError
        ):
            raise CorruptTape(f"{self._path} is damaged", cause=str(problem)) from problem
        if isinstance(problem, sqlite3.Error | OSError):
            raise StoreUnavailable(f"{self._path} cannot be used", cause=str(problem)) from problem


class SqliteCheckpoints(CheckpointEngine):
    """A `CheckpointStore` in one file (WAL, mode 0600), for any number of threads and processes.

    A put survives the death of the process; the last ones may be lost with the power
    (``synchronous="FULL"`` keeps those, for a sync of the disk each). Tables: ``node``, and in
    ``uses`` how many nodes and checkpoints refer to each.
    """

    def __init__(
        self, path: str | os.PathLike[str], types: Types = TYPES, *, synchronous: str = "NORMAL"
    ) -> None:
        super().__init__(types)
        if synchronous not in ("NORMAL", "FULL"):
            raise ValueError(f"synchronous is NORMAL or FULL, not {synchronous}")
        self._path = Path(path)
        self._synchronous = synchronous
        self._lock = threading.RLock()
        self._use = _Use(self._path, self._lock, self._connection)
        self._depth = 0
        self._deletions = -1
        self._open: sqlite3.Connection | None = None
        self._pid = 0
        with self._using():
            pass

    # A connection

    def _connection(self) -> sqlite3.Connection:
        """The connection of this process. One that was inherited by a fork is left alone."""
        if self._open is None or self._pid != os.getpid():
            if self._pid:
                if self._pid == os.getpid():
                    raise StoreUnavailable(f"{self._path} is closed")
                self._known, self._deletions, self._depth = Known(), -1, 0
            self._open, self._pid = self._connected(), os.getpid()
        return self._open

    def _connected(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        found = sqlite3.connect(
            self._path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
        )
        try:
            for line in (
                "auto_vacuum=INCREMENTAL",
                "journal_mode=WAL",
                "secure_delete=ON",
                "trusted_schema=OFF",
            ):
                found.execute(f"PRAGMA {line}")
            found.execute(f"PRAGMA synchronous={self._synchronous}")
            self._migrate(found)
        except BaseException:
            found.close()
            raise
        return found

    def _migrate(self, database: sqlite3.Connection) -> None:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if not version:
            database.execute("BEGIN IMMEDIATE")
            if not database.execute("PRAGMA user_version").fetchone()[0]:
                if database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                    raise StoreUnavailable(f"{self._path} is a database of something else")
                for statement in _SCHEMA.split(";\n"):
                    database.execute(statement)
                database.execute(f"PRAGMA application_id={_APPLICATION}")
                database.execute(f"PRAGMA user_version={_VERSION}")
            database.execute("COMMIT")
            return
        (application,) = database.execute("PRAGMA application_id").fetchone()
        if application != _APPLICATION:
            raise StoreUnavailable(f"{self._path} is a database of something else")
        if version > _VERSION:
            raise StoreUnavailable(f"{self._path} was written by a later version")

    def _using(self) -> _Use:
        """The connection, for this thread alone; its errors as those of playhead."""
        return self._use

    @contextmanager
    def _transaction(self, begin: str) -> Generator[sqlite3.Connection, None, None]:
        """One transaction; inside of another it is a part of that."""
        with self._using() as database:
            if self._depth:
                yield database
                return
            database.execute(begin)
            self._depth = 1
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0

    def _reading(self) -> Any:
        return self._transaction("BEGIN")

    # Reading

    def _row(self, id: bytes) -> Row:
        with self._using() as database:
            found = _row_of(database, id)
        if found is None:
            raise CheckpointUnknown(f"there is no checkpoint {id.hex()[:64]}")
        return found

    def _packed(self, id: bytes) -> Packed:
        question = (
            f"SELECT {_QUALIFIED}, key, note.packed FROM checkpoint "
            "LEFT JOIN note ON note.checkpoint = checkpoint.id WHERE checkpoint.id = ? ORDER BY note.id"
        )
        with self._using() as database:
            rows = database.execute(question, (id,)).fetchall()
        if not rows:
            raise CheckpointUnknown(f"there is no checkpoint {id.hex()[:64]}")
        notes = {key: packed for *_, key, packed in rows if key is not None}
        return Packed(_read(rows[0][:_WIDTH]), notes)

    def _nodes(self, digests: Collection[bytes]) -> Mapping[bytes, bytes]:
        question = "SELECT digest, size, data FROM node WHERE digest IN "
        with self._using() as database:
            rows = _answers(database, question, list(digests))
            return {digest: stretched(data, size) for digest, size, data in rows}

    def latest(self, run: bytes) -> Checkpoint | None:
        """The checkpoint of a run that was put last."""
        found = self.checkpoints(run, limit=1)
        return found[0] if found else None

    def checkpoints(
        self, run: bytes | None = None, *, before: bytes = b"", limit: int = 100
    ) -> list[Checkpoint]:
        """Checkpoints, those put last first; see `CheckpointStore.checkpoints`."""
        wanted, values = "1", list[Any]()
        if run is not None:
            wanted, values = "run = ?", [run]
        with self._reading() as database:
            if before:
                self._row(before)
                wanted += " AND seq < (SELECT seq FROM checkpoint WHERE id = ?)"
                values.append(before)
            question = f"SELECT {_COLUMNS} FROM checkpoint WHERE {wanted} ORDER BY seq DESC LIMIT ?"
            return [
                _read(row).checkpoint for row in database.execute(question, (*values, max(limit, 0)))
            ]

    def of_thread(self, thread: str, *, before: str = "", limit: int | None = None) -> list[Checkpoint]:
        """Checkpoints of a thread; see `CheckpointStore.of_thread`."""
        wanted, values = "thread = ? AND thread <> ''", [thread]
        if before:
            wanted, values = f"{wanted} AND name < ?", [thread, before]
        question = f"SELECT {_COLUMNS} FROM checkpoint WHERE {wanted} ORDER BY name DESC LIMIT ?"
        with self._using() as database:
            rows = database.execute(question, (*values, -1 if limit is None else max(limit, 0)))
            return [_read(row).checkpoint for row in rows]

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

    def _packed_notes(self, id: bytes) -> Mapping[str, bytes]:
        with self._using() as database:
            return dict(
                database.execute("SELECT key, packed FROM note WHERE checkpoint = ? ORDER BY id", (id,))
            )

    # Writing

    def _begun(self, known: Known, deletions: int) -> None:
        """Forget what is known to be stored, where something was deleted since. `NodesGone`."""
        if deletions != self._deletions:
            if self._deletions >= 0:
                self._known = Known()
            self._deletions = deletions
        if known is not self._known:
            raise NodesGone

    def _learn(self, added: Mapping[bytes, int]) -> None:
        if len(self._known.ids) > _MOST_KNOWN:
            self._known = Known()
        self._known.ids.update(added)

    def _write_notes(self, notes: Notes) -> None:
        with self._lock:
            self._learn(self._noted(notes))

    def _noted(self, notes: Notes) -> Mapping[bytes, int]:
        """Write those that are to be written. Ids of the nodes that are known now."""
        with self._transaction("BEGIN IMMEDIATE") as database:
            (deletions,) = database.execute("SELECT count FROM deletions").fetchone()
            self._begun(notes.known, deletions)
            there = self._packed_notes(notes.id)
            wanted = {
                key: packed for key, packed in notes.packed.items() if notes.replace or key not in there
            }
            rows = [(notes.id, key, packed) for key, packed in wanted.items()]
            database.executemany(
                "INSERT INTO note (checkpoint, key, packed) VALUES (?, ?, ?) "
                "ON CONFLICT (checkpoint, key) DO UPDATE SET packed = excluded.packed",
                rows,
            )
            ids = self._added(database, notes.fresh, _all_roots(wanted.values()))
            again = notes.packed.keys() & there.keys()
            if not again:
                return ids
            # A replaced note frees its nodes; where an old note stays, the new nodes are unused.
            dropped = Counter(dict.fromkeys(notes.fresh, 0))
            if notes.replace:
                dropped.update(_all_roots(there[key] for key in again))
            self._drop(database, dropped)
            return {}

    def _write(self, put: Put) -> Row:
        with self._lock:  # until what the transaction added is known
            stored, added = self._written(put)
            self._learn(added)
        return stored

    def _written(self, put: Put) -> tuple[Row, Mapping[bytes, int]]:
        """The row that is stored, and ids of the nodes that are known now."""
        row, id = put.row, put.row.checkpoint.id
        with self._transaction("BEGIN IMMEDIATE") as database:
            question = "SELECT count, (SELECT packed FROM checkpoint WHERE id = ?) FROM deletions"
            deletions, earlier = database.execute(question, (id,)).fetchone()
            self._begun(put.known, deletions)
            if earlier is not None:
                if not put.replace:
                    return self._row(id), {}
                database.execute("DELETE FROM checkpoint WHERE id = ?", (id,))
            database.execute(_INSERT, _values(row))
            ids = self._added(database, put.fresh, _roots(row.packed))
            if earlier is not None:
                self._drop(database, Counter(_roots(earlier)))
                ids = {}
        return row, ids

    def _added(
        self, database: sqlite3.Connection, fresh: Fresh, roots: Iterable[bytes]
    ) -> Mapping[bytes, int]:
        """Insert the nodes that are missing; count uses by them and of ``roots``. Ids of all."""
        ids: dict[bytes, int] = {}
        used: dict[bytes, int] = {}
        for digest in roots:
            used[digest] = used.get(digest, 0) + 1
        new: list[bytes] = []
        for digest, node in fresh.items():
            inserted = database.execute(_INSERT_NODE, (digest, len(node.data), squeezed(node.data)))
            if inserted.rowcount:
                ids[digest] = cast(int, inserted.lastrowid)
                new.append(digest)
                for below in {ref.digest for ref in node.below}:
                    used[below] = used.get(below, 0) + 1
            else:
                found = database.execute("SELECT id FROM node WHERE digest = ?", (digest,)).fetchone()
                ids[digest] = found[0]
        known = self._known.ids
        first = [(used.pop(digest, 0), ids[digest]) for digest in new]
        database.executemany("INSERT INTO uses (count, node) VALUES (?, ?)", first)
        more = [(count, ids.get(digest) or known[digest]) for digest, count in used.items()]
        database.executemany("UPDATE uses SET count = count + ? WHERE node = ?", more)
        return ids

    # Deleting

    def delete(self, ids: Sequence[bytes]) -> Freed:
        """Delete checkpoints, and the nodes that nothing else uses. Unknown ids are passed over."""
        return self._deleted("SELECT id, packed FROM checkpoint WHERE id IN ", list(dict.fromkeys(ids)))

    def delete_run(self, run: bytes) -> Freed:
        """Delete the checkpoints of a run, as `delete`."""
        return self._deleted("SELECT id, packed FROM checkpoint WHERE run IN ", [run])

    def _deleted(self, question: str, values: list[bytes]) -> Freed:
        with self._transaction("BEGIN IMMEDIATE") as database:
            rows = list(_answers(database, question, values))
            if not rows:
                return Freed()
            database.executemany("DELETE FROM checkpoint WHERE id = ?", [(id,) for id, _ in rows])
            wanted = [id for id, _ in rows]
            said = list(_answers(database, "SELECT id, packed FROM note WHERE checkpoint IN ", wanted))
            database.executemany("DELETE FROM note WHERE id = ?", [(id,) for id, _ in said])
            dropped = Counter(digest for _, packed in rows + said for digest in _roots(packed))
            freed = self._drop(database, dropped)
        with self._using() as database:
            database.executescript("PRAGMA incremental_vacuum")  # `execute` frees one page
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return Freed(len(rows), *freed)

    def _drop(self, database: sqlite3.Connection, dropped: Counter[bytes]) -> tuple[int, int]:
        """As `_released`; other processes learn of it."""
        database.execute("UPDATE deletions SET count = count + 1")
        return self._released(database, dropped)

    def _released(self, database: sqlite3.Connection, dropped: Counter[bytes]) -> tuple[int, int]:
        """Take uses away, and the nodes that have none left: how many, and their bytes."""
        count = size = 0
        while dropped:
            question = "SELECT digest, id FROM node WHERE digest IN "
            ids = dict(_answers(database, question, list(dropped)))
            down = [(dropped[digest], node) for digest, node in ids.items()]
            database.executemany("UPDATE uses SET count = count - ? WHERE node = ?", down)
            question = "SELECT node FROM uses WHERE count <= 0 AND node IN "
            unused = [node for (node,) in _answers(database, question, list(ids.values()))]
            dropped = Counter()
            for _, length, data in _answers(
                database, "SELECT id, size, data FROM node WHERE id IN ", unused
            ):
                count, size = count + 1, size + len(data)
                dropped.update(_below(data, length))
            gone = [(node,) for node in unused]
            database.executemany("DELETE FROM node WHERE id = ?", gone)
            database.executemany("DELETE FROM uses WHERE node = ?", gone)
        return count, size

    # Verifying

    def _damages(self) -> Iterator[str]:
        with self._reading() as database:
            for (line,) in database.execute("PRAGMA integrity_check"):
                if line != "ok":
                    yield str(line)
            used: Counter[bytes] = Counter()
            for row in database.execute(f"SELECT {_COLUMNS} FROM checkpoint"):
                try:
                    used.update(_roots(_read(row).packed))
                except CorruptTape as problem:
                    yield f"checkpoint {row[0]!r:.80}: {problem.cause or problem.what}"
            for key, packed in database.execute("SELECT key, packed FROM note"):
                try:
                    used.update({ref.digest for ref in nodes.refs_in(packed)})
                except CorruptTape as problem:
                    yield f"note {key!r:.40}: {problem.cause or problem.what}"
            counts: dict[bytes, int] = {}
            question = (
                "SELECT digest, size, data, coalesce(count, -1) FROM node LEFT JOIN uses ON node = id"
            )
            for digest, size, data, count in database.execute(question):
                if not isinstance(digest, bytes):
                    yield "a node without a digest"
                    continue
                counts[digest] = count
                try:
                    used.update(_children(nodes.opened(digest, stretched(data, size))))
                except CorruptTape as problem:
                    yield problem.cause or problem.what
            for digest in used.keys() - counts.keys():
                yield f"node {digest.hex()[:16]} is missing"
            for digest in counts.keys() - used.keys():
                yield f"node {digest.hex()[:16]} is used by nothing"
            for digest, count in counts.items():
                if count != used[digest]:
                    name = digest.hex()[:16]
                    yield f"node {name} is used {used[digest]} times, and said to be {count} times"

    def close(self) -> None:
        """Close the file. Nothing happens when it is closed."""
        with self._lock:
            if self._open is not None and self._pid == os.getpid():
                self._open.close()
                self._open = None


def _answers(
    database: sqlite3.Connection, question: str, values: Sequence[Any]
) -> Iterator[tuple[Any, ...]]:
    """The rows of a question that ends with ``IN``, asked for some values at a time."""
    for at in range(0, len(values), _AT_ONCE):
        some = values[at : at + _AT_ONCE]
        yield from database.execute(f"{question}({', '.join('?' * len(some))})", some).fetchall()


def _roots(packed: bytes) -> set[bytes]:
    """The nodes that a packed state refers to; none, if it is damaged."""
    with suppress(CorruptTape):
        return {ref.digest for ref in nodes.refs_in(packed)}
    return set()


def _all_roots(packed: Iterable[bytes]) -> Iterator[bytes]:
    return (digest for one in packed for digest in _roots(one))


def _children(node: nodes.Node) -> set[bytes]:
    return {ref.digest for ref in node.below}


def _below(data: object, size: object) -> list[bytes]:
    """The nodes that a stored node refers to; none, if it is damaged: those stay."""
    with suppress(CorruptTape):
        return list(_children(nodes.parsed(stretched(data, size))))
    return []


def _row_of(database: sqlite3.Connection, id: bytes) -> Row | None:
    row = database.execute(f"SELECT {_COLUMNS} FROM checkpoint WHERE id = ?", (id,)).fetchone()
    return None if row is None else _read(row)


def _values(row: Row) -> tuple[Any, ...]:
    lineage, checkpoint = row.checkpoint.lineage, row.checkpoint
    labels = json.dumps(lineage.labels) if lineage.labels else "[]"
    told = (
        lineage.run,
        lineage.span,
        lineage.kind,
        lineage.parent,
        lineage.time_ns,
        labels,
        lineage.thread,
        lineage.name,
    )
    return (checkpoint.id, *told, checkpoint.size_bytes, checkpoint.digest, row.packed)


def _read(row: Sequence[Any]) -> Row:
    """A row that came from the file. `CorruptTape`: it is not what was written."""
    id, run, span, kind, parent, time_ns, labels, thread, name, size, digest, packed = row
    try:
        if {type(id), type(run), type(span), type(parent), type(digest), type(packed)} != _BYTES:
            raise TypeError("an id, state or digest is not made of bytes")
        if type(thread) is not str or type(name) is not str:
            raise TypeError("a thread or name is no text")
        if kind not in KINDS or not isinstance(time_ns, int) or not isinstance(size, int):
            raise ValueError("kind, time or size are none")
        said = () if labels == "[]" else tuple(map(str, json.loads(labels)))
        lineage = Lineage(run, span, kind, parent, time_ns, said, id, thread, name)
        return verified(Row(Checkpoint(id, lineage, size, digest), packed))
    except (TypeError, ValueError, RecursionError) as problem:
        raise CorruptTape("a checkpoint is damaged", cause=str(problem)) from None
