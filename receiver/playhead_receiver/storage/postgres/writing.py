"""The writing connection to PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import psycopg

from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.postgres.address import SchemaAddress, connect, store_errors
from playhead_receiver.storage.postgres.database import PgDb
from playhead_receiver.storage.postgres.schema import check_version
from playhead_receiver.storage.postgres.tables import PostgresTables
from playhead_receiver.storage.sql.writing.rows import RowWriter
from playhead_receiver.storage.values.stored import Receipt
from playhead_receiver.storage.writing.prepare import Prepared
from playhead_receiver.storage.writing.recent_bundles import RecentBundles

T = TypeVar("T")


class PostgresBackend:
    """Writes batches and executes jobs, each in a transaction. Used by one thread.

    A lost connection is replaced at the next transaction. If it is lost during a commit, it is unknown
    whether the commit was done; the caller gets an error, and may send the batch again.
    """

    def __init__(self, address: SchemaAddress, blobs: Blobs, recent: RecentBundles) -> None:
        """``recent``: gets the bundles that were committed."""
        self.name = address.name
        self._address = address
        self._tables = PostgresTables()
        self._rows = RowWriter(self._tables, blobs, recent)
        self._connection: psycopg.Connection | None = None
        self.position = 0
        self.away = False
        self.transact(lambda _: None, forgets=False)

    def write(self, batches: Sequence[Prepared]) -> list[Receipt]:
        """Write all batches, or none."""
        receipts = self._transact(lambda _: self._rows.write(batches))
        self._rows.committed()
        return receipts

    def transact(self, action: Callable[[PgDb], T], forgets: bool) -> T:
        """Execute ``action`` in a transaction. ``forgets``: it changes rows that writers cache."""

        def act(db: PgDb) -> T:
            result = action(db)
            if forgets:
                db.execute("UPDATE counter SET writes = writes + 1, deletions = deletions + 1")
            return result

        return self._transact(act)

    def empty_log(self) -> bool:
        """Always False: log and free pages belong to the server, so nothing is overwritten from here."""
        return False

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _transact(self, action: Callable[[PgDb], T]) -> T:
        with store_errors(self.name):
            self.away = True
            db = self._begin()
            self.away = False
            try:
                result = action(db)
                db.connection.execute("COMMIT")
            except BaseException:
                self._rows.forget()
                if not db.connection.closed:
                    db.connection.rollback()
                raise
        self.position = self._rows.position
        return result

    def _begin(self) -> PgDb:
        """Begin a transaction as the writer, on the existing connection or a new one."""
        if self._connection is not None and not self._connection.closed:
            try:
                return self._turn(self._connection)
            except (psycopg.OperationalError, psycopg.InterfaceError):
                if not self._connection.closed:
                    raise
        self._connection = connect(self._address)
        return self._turn(self._connection)

    def _turn(self, connection: psycopg.Connection) -> PgDb:
        db = PgDb(connection)
        try:
            connection.execute("BEGIN")
            self._tables.use(db)
            if self._rows.begin():
                check_version(connection, self.name)
        except BaseException:
            self._rows.forget()
            if not connection.closed:
                connection.rollback()
            raise
        return db
