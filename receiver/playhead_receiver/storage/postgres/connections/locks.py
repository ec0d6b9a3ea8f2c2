"""Locks among all receivers with the same schema. A lock is released with its connection."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum

from playhead_receiver.storage.postgres.connections.reader import Pool


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
