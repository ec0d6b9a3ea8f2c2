"""The PostgreSQL engine: one schema of a database, written to by any number of receivers."""

from playhead_receiver.store.postgres.engine import PostgresStore

__all__ = ["PostgresStore"]
