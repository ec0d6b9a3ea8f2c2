"""Connections that read a store on PostgreSQL."""

from __future__ import annotations

import queue
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from playhead_receiver.store.blobs import Blobs
from playhead_receiver.store.postgres.db import PgDb
from playhead_receiver.store.postgres.place import Place, connect, speaking_of
from playhead_receiver.store.sql.reader import Reader
from playhead_semconv.errors import StoreUnavailable

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Pool:
    """Connections that are idle, for any thread. One that was cut off meanwhile is replaced."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._idle: queue.LifoQueue[psycopg.Connection] = queue.LifoQueue()
        self._closed = False

    @contextmanager
    def one(self, first: str = "") -> Generator[psycopg.Connection]:
        """A connection on which ``first`` was done. `StoreUnavailable`."""
        if self._closed:
            raise StoreUnavailable(f"the store {self._place.name} is closed")
        with speaking_of(self._place):
            connection = self._ready(first or "SELECT")
            try:
                yield connection
            finally:
                if not connection.closed and connection.info.transaction_status:
                    connection.rollback()
                if self._closed or connection.closed:
                    connection.close()
                else:
                    self._idle.put(connection)

    def close(self) -> None:
        """Close what is idle now, and the rest when it is given back. Idempotent."""
        self._closed = True
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    def _ready(self, first: str) -> psycopg.Connection:
        while True:
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                connection = connect(self._place)
                connection.execute(first.encode())
                return connection
            try:
                connection.execute(first.encode())
                return connection
            except psycopg.OperationalError:
                connection.close()


class PostgresReader(Reader):
    """Reads from any thread, each with a connection of its own."""

    def __init__(self, pool: Pool, blobs: Blobs) -> None:
        super().__init__(blobs)
        self._pool = pool

    @contextmanager
    def connection(self) -> Generator[PgDb]:
        """A connection whose reads in the ``with`` block all see one state of the store."""
        with self._pool.one(_BEGIN) as connection:
            yield PgDb(connection)
            connection.execute("COMMIT")

    @contextmanager
    def stream(self) -> Generator[PgDb]:
        """As `connection`, for reads of more rows than are to be held at once."""
        with self._pool.one(_BEGIN) as connection:
            db = PgDb(connection, piecemeal=True)
            yield db
            db.close()

    def one(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row, None if there is none."""
        return next(iter(self.all(sql, values)), None)

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows."""
        with self._pool.one() as connection:
            return list(PgDb(connection).execute(sql, values))
