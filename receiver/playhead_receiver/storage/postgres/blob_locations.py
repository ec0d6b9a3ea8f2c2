"""The list of object stores that hold blobs of a store on PostgreSQL."""

from __future__ import annotations

from playhead_receiver.storage.postgres.connections.reader import Pool


class PlaceTable:
    """`BlobPlaces` in the tables ``owner`` and ``place``, shared by all receivers of the database."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def owner(self) -> str:
        """The name of the store."""
        with self._pool.one() as connection:
            found = connection.execute("SELECT id FROM owner").fetchone()
        return "" if found is None else str(found[0])

    def all(self) -> list[str]:
        """All URLs; new blobs go to the last."""
        with self._pool.one() as connection:
            return [row[0] for row in connection.execute("SELECT url FROM place ORDER BY number")]

    def add(self, url: str) -> None:
        """Add a URL as the last one; if it is known, move it to the end."""
        if self.all()[-1:] == [url]:
            return
        with self._pool.one("BEGIN; LOCK TABLE place IN EXCLUSIVE MODE") as connection:
            connection.execute("DELETE FROM place WHERE url = %s", (url,))
            connection.execute("INSERT INTO place(url) VALUES (%s)", (url,))
            connection.execute("COMMIT")
