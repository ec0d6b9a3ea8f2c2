"""The PostgreSQL engine: one schema of a database, with any number of receivers that write to it."""

from playhead_receiver.storage.postgres.engine import PostgresStore

__all__ = ["PostgresStore"]
