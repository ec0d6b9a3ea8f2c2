"""The checkpoints of a store on PostgreSQL: a schema beside that of its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playhead_receiver.storage.postgres.connections.database import PgDb
from playhead_receiver.storage.postgres.connections.reader import Pool
from playhead_receiver.storage.postgres.used_space import used_by_rows
from playhead_receiver.storage.runs.naming import place_beside, split_schema
from playhead_receiver.storage.sql.checkpoint_location import CheckpointPlace

if TYPE_CHECKING:
    from playhead_checkpoint import PostgresCheckpoints

SUFFIX: Final = "Checkpoints"
"""No tenant has a capital letter in its name, so this is no schema of one."""


class CheckpointSchema(CheckpointPlace):
    """The schema of a store's checkpoints."""

    def __init__(self, url: str, pool: Pool) -> None:
        """``url``: of the store; ``pool``: its connections."""
        super().__init__()
        self._url = place_beside(url, SUFFIX)
        self._pool = pool

    def _is_there(self) -> bool:
        _, schema = split_schema(self._url)
        with self._pool.one() as connection:
            found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,))
            return found.fetchone() is not None

    def used_bytes(self) -> int:
        """Bytes of their rows, and a share of the indexes."""
        if self.there() is None:
            return 0
        with self._pool.one() as connection:
            return used_by_rows(PgDb(connection), split_schema(self._url)[1])

    def _open(self) -> PostgresCheckpoints:
        from playhead_checkpoint import PostgresCheckpoints

        return PostgresCheckpoints(self._url)
