"""Locks among all receivers that have the same schema; they go with the connection that holds them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum

from playhead_receiver.store.postgres.connections.reader import Pool


class Key(IntEnum):
    """What a lock is for."""

    BLOBS = 0x706C6865
    INDEX = 0x706C6866
    HOUSEKEEPING = 0x706C6867


def lock(function: str, key: Key) -> str:
    """A statement that calls one of PostgreSQL's functions for advisory locks.

    Keys are those of a whole database, so they have the schema in them.
    """
    return f"SELECT {function}({key.value}, hashtext(current_schema()))"


@contextmanager
def alone(pool: Pool, key: Key) -> Generator[bool]:
    """Whether nobody else holds the lock; then it is held in the ``with`` block. Waits for nobody."""
    with pool.one() as connection:
        found = connection.execute(lock("pg_try_advisory_lock", key).encode()).fetchone()
        mine = found is not None and bool(found[0])
        try:
            yield mine
        finally:
            if mine and not connection.closed:
                connection.execute(lock("pg_advisory_unlock", key).encode())
