"""Checkpoints in a schema of PostgreSQL. It needs the extra ``postgres``."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg

from playhead_checkpoint.store.deletion import ALL_COUNTED
from playhead_checkpoint.store.engine import Fresh, KnownNodes
from playhead_checkpoint.store.rows import Session
from playhead_checkpoint.store.sql import SqlCheckpoints
from playhead_checkpoint.tree.stored_nodes import compressed
from playhead_checkpoint.tree.types import TYPES, Types
from playhead_core.errors import CorruptTape, StoreUnavailable, UsageError

_VERSION: Final = 2
_LOCK: Final = 0x70636B31
"""Together with the id of the schema, the lock of the single writer."""
_SCHEMA_NAME: Final = re.compile(r"[^?\"'\\\x00-\x1f]+")
_LONGEST_SCHEMA_BYTES: Final = 63
_UNUSABLE: Final = psycopg.OperationalError, psycopg.InterfaceError
_SETTINGS: Final = (
    "SET lock_timeout = '60s'; SET idle_in_transaction_session_timeout = '120s';"
    " SET client_min_messages = warning; SET jit = off;"
)
_SCHEMA: Final = """
CREATE TABLE node (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, digest bytea NOT NULL UNIQUE,
    size integer NOT NULL, data bytea NOT NULL
);
ALTER TABLE node ALTER data SET STORAGE EXTERNAL;
CREATE TABLE uses (node bigint PRIMARY KEY, count bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE checkpoint (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id bytea NOT NULL UNIQUE,
    run bytea NOT NULL, span bytea NOT NULL, kind text NOT NULL, parent bytea NOT NULL,
    time_ns bigint NOT NULL, labels text NOT NULL,
    thread text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    size bigint NOT NULL, digest bytea NOT NULL, packed bytea NOT NULL
);
CREATE INDEX checkpoint_of_run ON checkpoint (run, seq) WHERE run <> '';
CREATE INDEX checkpoint_of_thread ON checkpoint (thread, name) WHERE thread <> '';
CREATE TABLE note (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, checkpoint bytea NOT NULL, key text NOT NULL,
    packed bytea NOT NULL, UNIQUE (checkpoint, key)
);
CREATE TABLE deletions (count bigint NOT NULL);
INSERT INTO deletions VALUES (0);
CREATE TABLE version (version integer NOT NULL);
INSERT INTO version VALUES (1);
"""
_COUNTED: Final = f"""
ALTER TABLE uses RENAME TO use_count;
CREATE TABLE counted (checkpoint bigint NOT NULL, note bigint NOT NULL, node bigint NOT NULL);
INSERT INTO counted {ALL_COUNTED};
UPDATE version SET version = 2;
"""
_INSERT_NODES: Final = (
    "INSERT INTO node (digest, size, data) SELECT * FROM unnest(?::bytea[], ?::integer[], ?::bytea[]) "
    "ON CONFLICT DO NOTHING"
)


class _Statements:
    """Executes statements with ``?`` on a connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Any:
        return self._connection.cursor(binary=True).execute(_psycopg_query(query), values)

    def executemany(self, query: str, values: Iterable[Sequence[Any]], /) -> None:
        self._connection.cursor(binary=True).executemany(_psycopg_query(query), list(values))


@lru_cache(maxsize=512)
def _psycopg_query(query: str) -> Any:
    return query.replace("%", "%%").replace("?", "%s")


class PostgresCheckpoints(SqlCheckpoints):
    """A `CheckpointStore` in a schema of its own, for any number of threads, processes and machines.

    ``url``: ``postgresql://USER@HOST/DATABASE?schema=NAME``; without a schema it is
    ``playhead_checkpoints``. The schema is made where it is missing. A put is as durable as the
    server's ``synchronous_commit`` says. Writers take turns. A connection that breaks is opened again at
    the next call.
    """

    def __init__(self, url: str, types: Types = TYPES) -> None:
        super().__init__(types)
        self._url, self._schema = _split(url)
        self._name = _without_password(self._url)
        self._depth = 0
        self._open: psycopg.Connection[Any] | None = None
        self._pid = os.getpid()
        self._closed = False
        with self._using():
            pass

    # A connection

    def _connection(self) -> psycopg.Connection[Any]:
        """Return the connection of this process. A connection inherited by a fork is not touched."""
        if self._closed:
            raise StoreUnavailable(f"{self._name} is closed")
        if self._open is None or self._open.closed or self._pid != os.getpid():
            self._known, self._deletions, self._depth = KnownNodes(), -1, 0
            self._open, self._pid = self._connected(), os.getpid()
        return self._open

    def _connected(self) -> psycopg.Connection[Any]:
        found = psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        try:
            quoted: Any = f'{_SETTINGS} SET search_path TO "{self._schema}"'
            found.execute(quoted)
            self._migrate(found)
        except BaseException:
            found.close()
            raise
        return found

    def _migrate(self, database: psycopg.Connection[Any]) -> None:
        statement: Any
        with database.transaction():
            database.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            there = database.execute(
                "SELECT to_regclass(%s) IS NOT NULL", (f'"{self._schema}".version',)
            ).fetchone()
            if there != (True,):
                statement = f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"; {_SCHEMA}'
                database.execute(statement)
            found = database.execute("SELECT version FROM version").fetchone()
            if found is None or found[0] > _VERSION:
                raise StoreUnavailable(
                    f"{self._name}, schema {self._schema}, was written by a later version"
                )
            if found[0] < _VERSION:
                statement = _COUNTED
                database.execute(statement)

    @contextmanager
    def _using(self) -> Generator[Session, None, None]:
        """Hold the connection for this thread; translate its errors."""
        with self._lock:
            try:
                yield _Statements(self._connection())
            except (*_UNUSABLE, psycopg.errors.InsufficientPrivilege) as problem:
                if self._open is not None and not self._depth:
                    self._open.close()
                raise StoreUnavailable(f"{self._name} cannot be used", cause=str(problem)) from problem
            except psycopg.DataError as problem:
                raise UsageError("a name or key cannot be stored", cause=str(problem)) from problem
            except psycopg.Error as problem:
                raise CorruptTape(f"{self._name} is damaged", cause=str(problem)) from problem

    @contextmanager
    def _transaction(self, kind: str) -> Generator[Session, None, None]:
        """One transaction; a nested one is part of the outer one."""
        with self._using() as database:
            if self._depth:
                yield database
                return
            connection = self._connection()
            with connection.transaction():
                self._depth = 1
                try:
                    database.execute(kind)
                    yield database
                finally:
                    self._depth = 0

    def _reading(self) -> Any:
        return self._transaction("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    def _writing(self) -> Any:
        return self._transaction(
            f"SELECT pg_advisory_xact_lock({_LOCK}, (SELECT oid::bigint % 2147483647 FROM pg_namespace "
            f"WHERE nspname = '{self._schema}')::integer)"
        )

    def _at_once(self) -> Any:
        return self._writing()  # no deletion may miss the row

    # Only for a server

    def stored_bytes(self) -> int:
        """Bytes of tables and indexes; deleted rows count until the server has vacuumed."""
        query = (
            "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint FROM pg_class"
            " JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = ? AND relkind = 'r'"
        )
        with self._using() as database:
            return int(database.execute(query, (self._schema,)).fetchone()[0])

    # Differences from other databases

    def _insert(self, database: Session, fresh: Fresh) -> None:
        sizes = [len(node.data) for node in fresh.values()]
        data = [compressed(node.data) for node in fresh.values()]
        database.execute(_INSERT_NODES, (list(fresh), sizes, data))

    def _insert_row(self, database: Session, statement: str, values: Sequence[Any]) -> int | None:
        found = database.execute(f"{statement} RETURNING seq", values).fetchone()
        return found[0] if found else None

    def _tidy(self) -> None:
        """No-op: autovacuum does it."""

    def _broken(self, database: Session) -> Iterator[str]:
        yield from ()

    def close(self) -> None:
        """Close the connection. Idempotent."""
        with self._lock:
            self._closed = True
            if self._open is not None and self._pid == os.getpid():
                self._open.close()
            self._open = None


def _split(url: str) -> tuple[str, str]:
    """Return the URL for libpq, and the schema."""
    parts = urlsplit(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(options).get("schema", "playhead_checkpoints")
    named = _SCHEMA_NAME.fullmatch(schema) and len(schema.encode()) <= _LONGEST_SCHEMA_BYTES
    if parts.scheme not in ("postgresql", "postgres") or not named:
        raise UsageError(
            "the URL of the store cannot be read",
            hint="postgresql://USER@HOST:PORT/DATABASE?schema=NAME, without quotes, of at most 63 bytes",
        )
    query = urlencode([(name, value) for name, value in options if name != "schema"])
    return urlunsplit(parts._replace(query=query)), schema


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))
