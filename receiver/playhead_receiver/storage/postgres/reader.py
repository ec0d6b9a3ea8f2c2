"""The pool of connections, locks among receivers, and the reader of a store on PostgreSQL."""

from __future__ import annotations

import select
import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import psycopg

from playhead_core.errors import StoreUnavailable
from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.postgres.address import SchemaAddress, connect, store_errors
from playhead_receiver.storage.postgres.database import PgDb
from playhead_receiver.storage.sql.reading.reader import SqlReader

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
IDLE_S = 60.0
"""How long an idle connection is kept."""


class Pool:
    """A pool of idle connections, for any thread. A connection that was lost meanwhile is replaced."""

    def __init__(self, address: SchemaAddress) -> None:
        self._address = address
        self._idle: deque[tuple[float, psycopg.Connection]] = deque()
        """Time of the last use (monotonic) and connection; the most recently used one is last."""
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def one(self, first: str = "") -> Generator[psycopg.Connection]:
        """A connection on which ``first`` was executed. `StoreUnavailable`."""
        if self._closed:
            raise StoreUnavailable(f"the store {self._address.name} is closed")
        with store_errors(self._address.name):
            connection = self._ready(first)
            try:
                yield connection
            finally:
                if not connection.closed and connection.info.transaction_status:
                    connection.rollback()
                self._give_back(connection)

    def close(self) -> None:
        """Close idle connections now, and the others when they are returned. Idempotent."""
        with self._lock:
            self._closed = True
            idle = [self._idle.popleft() for _ in range(len(self._idle))]
        for _, connection in idle:
            connection.close()

    def _give_back(self, connection: psycopg.Connection) -> None:
        now, old = time.monotonic(), list[psycopg.Connection]()
        with self._lock:
            if self._closed or connection.closed:
                old.append(connection)
            else:
                self._idle.append((now, connection))
            while self._idle and self._idle[0][0] < now - IDLE_S:
                old.append(self._idle.popleft()[1])
        for one in old:
            one.close()

    def _ready(self, first: str) -> psycopg.Connection:
        while True:
            with self._lock:
                connection = self._idle.pop()[1] if self._idle else None
            fresh = connection is None
            connection = connection or connect(self._address)
            try:
                if first or (not fresh and _has_news(connection)):
                    connection.execute(first.encode() or b"SELECT")
                return connection
            except BaseException as problem:
                connection.close()
                if fresh or not isinstance(problem, psycopg.OperationalError):
                    raise


def _has_news(connection: psycopg.Connection) -> bool:
    """Whether the server sent something unasked, mostly that it is gone. Needs no round trip."""
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


class PostgresReader(SqlReader):
    """Reads from any thread, each read with a connection of its own."""

    def __init__(self, pool: Pool, blobs: Blobs) -> None:
        super().__init__(blobs)
        self._pool = pool

    @contextmanager
    def connection(self) -> Generator[PgDb]:
        """A connection whose reads in the ``with`` block all see one snapshot of the store."""
        with self._pool.one(_BEGIN) as connection:
            yield PgDb(connection)
            connection.execute("COMMIT")

    @contextmanager
    def single(self) -> Generator[PgDb]:
        """A connection for a single statement."""
        with self._pool.one() as connection:
            yield PgDb(connection)

    @contextmanager
    def stream(self) -> Generator[PgDb]:
        """As `connection`, for reads whose rows should not all be in memory at once."""
        with self._pool.one(_BEGIN) as connection:
            yield PgDb(connection, piecemeal=True)
            connection.rollback()  # closes cursors that were not read to the end

    def one(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row, None if there is none."""
        return next(iter(self.all(sql, values)), None)

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows."""
        with self.single() as db:
            return list(db.execute(sql, values))


class Key(IntEnum):
    """What a lock protects."""

    BLOBS = 0x706C6865
    INDEX = 0x706C6866
    HOUSEKEEPING = 0x706C6867


def lock(function: str, key: Key) -> str:
    """A statement that calls one of PostgreSQL's functions for advisory locks.

    Lock keys are shared by the whole database, so they include the schema.
    """
    return f"SELECT {function}({key.value}, hashtext(current_schema()))"


@contextmanager
def alone(pool: Pool, key: Key) -> Generator[bool]:
    """Try to hold a lock for the ``with`` block, without waiting; the block gets whether it is held."""
    with pool.one() as connection:
        found = connection.execute(lock("pg_try_advisory_lock", key).encode()).fetchone()
        mine = found is not None and bool(found[0])
        try:
            yield mine
        finally:
            if mine and not connection.closed:
                connection.execute(lock("pg_advisory_unlock", key).encode())
