"""The full text index in tables: words of content that is stored once, as `tsvector`.

Texts are split into words by `content.words`, not by the server's parser, so that a search finds the
same as in the other engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from playhead_receiver.storage.api.search import MOST_EXAMINED, Hit, Lag, TraceFilter
from playhead_receiver.storage.api.store import Store
from playhead_receiver.storage.content.texts import PLACE_BITS, address_of, frame_of, last_address
from playhead_receiver.storage.content.words import folded_words, phrases
from playhead_receiver.storage.postgres.database import PgDb
from playhead_receiver.storage.postgres.reader import Key, Pool, lock
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.sql.search.searcher import FACT_WORDS, TEXT_WORDS, Searcher
from playhead_receiver.storage.values.run_summaries import Need
from playhead_receiver.storage.writing.recent_bundles import RecentBundles

if TYPE_CHECKING:
    from playhead_receiver.storage.content.references import References

WORDS_AT_ONCE = 8000
"""Words of one row: half of the positions that PostgreSQL counts in one `tsvector`."""
OVERLAP = 16
"""Words that one row repeats from the beginning of the next, so that phrases across rows are found."""
LONGEST_WORD = 100
NEWEST = 2000
"""Rows that are searched first: frequent words are found there without reading all their rows."""
FEW = 5000
"""If fewer rows match, all of them are fetched, however old they are."""
WIDTHS = (128, 1024, 8192)
"""Widths in bundles of the searches for a word that is in many rows, but not in the newest ones."""
_UNITS = {TEXT_WORDS: 1 << PLACE_BITS, FACT_WORDS: 256}


class PostgresSearch(Searcher):
    """The index of one store. One receiver at a time builds it."""

    HAS = "position(? IN keys) > 0"

    def __init__(
        self,
        pool: Pool,
        reader: SqlReader,
        store: Store,
        recent: RecentBundles,
        references: References | None = None,
    ) -> None:
        super().__init__(reader, store, recent, references)
        self._pool = pool
        self._deletions = 0
        """The store's count of deletions at the last indexing."""

    def index(self) -> int:
        """Index some more of the store; 0 if all of it is indexed, or another receiver indexes now."""
        try:
            return self._index()
        except BaseException:
            self._recent_keys.forget()
            raise

    def _index(self) -> int:
        with self._pool.one("BEGIN") as connection:
            db = PgDb(connection)
            if not db.execute(lock("pg_try_advisory_xact_lock", Key.INDEX)).get:
                return 0
            done = db.execute("SELECT done.bundle, done.position, deletions FROM done, counter").get
            bundle, position, deletions = done
            if deletions != self._deletions:
                self._recent_keys.forget()
                self._recent.clear()
                self._deletions = deletions
            signed: list[tuple[int, bytes, bytes]] = []
            rows: dict[str, list[tuple[int, str]]] = {TEXT_WORDS: [], FACT_WORDS: []}

            def put(table: str, row: int, words: str) -> None:
                rows[table] += ((row, part) for part in _vectors(words))

            count, bundle, position = self._read_on(
                bundle, position, put, lambda id, trace_id, keys: signed.append((id, trace_id, keys))
            )
            if signed:
                connection.execute(
                    "INSERT INTO signature SELECT * FROM unnest(%s::int8[], %s::bytea[], %s::bytea[])"
                    " ON CONFLICT DO NOTHING",
                    list(map(list, zip(*signed, strict=True))),
                )
            for table, found in rows.items():
                if found:
                    connection.execute(
                        f"INSERT INTO {table} SELECT * FROM"  # type: ignore[arg-type]
                        " unnest(%s::int8[], %s::text[]::tsvector[])",
                        list(map(list, zip(*found, strict=True))),
                    )
            db.execute("UPDATE done SET bundle = ?, position = ?", (bundle, position))
            connection.execute("COMMIT")
            return count

    def unindex(self) -> None:
        """Empty the index. Other receivers notice it as they notice a deletion."""
        with self._pool.one("BEGIN") as connection:
            connection.execute(lock("pg_advisory_xact_lock", Key.INDEX).encode())
            connection.execute("TRUNCATE text_words, fact_words, signature, unsearch")
            connection.execute("UPDATE done SET bundle = 0, position = 0")
            connection.execute("UPDATE counter SET deletions = deletions + 1")
            connection.execute("COMMIT")
        self._recent_keys.forget()

    def forget(self) -> int:
        """Remove content from the index that was deleted from the store, and the rows that say so."""
        if self._reader.one("SELECT 1 FROM unsearch LIMIT 1") is None:
            return 0
        with self._pool.one("BEGIN") as connection:
            connection.execute(lock("pg_advisory_xact_lock", Key.INDEX).encode())
            gone = connection.execute("DELETE FROM unsearch RETURNING row_id, fact").fetchall()
            bundles = list({frame_of(row) for row, fact in gone if not fact})
            connection.execute("DELETE FROM signature WHERE bundle = ANY(%s)", (bundles,))
            for table, of_facts in ((TEXT_WORDS, False), (FACT_WORDS, True)):
                rows = [row for row, fact in gone if fact == of_facts]
                connection.execute(
                    f"DELETE FROM {table} WHERE row_id = ANY(%s)",  # type: ignore[arg-type]
                    (rows,),
                )
            for row in {row for row, fact in gone if not fact and row == last_address(frame_of(row))}:
                connection.execute(
                    f"DELETE FROM {TEXT_WORDS} WHERE row_id BETWEEN %s AND %s",
                    (address_of(frame_of(row), 0), row),
                )
            connection.execute("COMMIT")
        return 0

    def lag(self) -> Lag:
        """How much is stored and not indexed yet."""
        bundle, position = self._reader.one("SELECT bundle, position FROM done") or (0, 0)
        return self._lag(bundle, position)

    def search(self, text: str, limit: int, trace_filter: TraceFilter | None = None) -> list[Hit]:
        """Where all words of ``text`` occur together, newest first."""
        query, most = _query(text), limit if trace_filter is None else MOST_EXAMINED
        found = [self._rows(table, query, most) for table in (TEXT_WORDS, FACT_WORDS)]
        return self._hits(found[0], found[1], text, limit, trace_filter)

    def _rows(self, table: str, query: str, limit: int) -> list[int]:
        """The newest rows that match.

        A single query would be slow: the server would either scan all rows, from the newest on, for a
        rare word, or fetch all matching rows to find the newest ones for a frequent word.
        """
        matches = f"words @@ CAST('{query}' AS tsquery)"
        newest = f"(SELECT row_id, words FROM {table} ORDER BY row_id DESC LIMIT {NEWEST}) AS newest"
        with self._pool.one("BEGIN") as connection:
            db = PgDb(connection)

            # The numbers are literals, not parameters: a generic plan would read too much.
            def rows(source: str) -> list[int]:
                return _newest(db, f"SELECT row_id FROM {source} ORDER BY row_id DESC", limit)

            found = rows(f"{newest} WHERE {matches}")
            if len(found) >= limit:
                return found
            last: int = db.execute(f"SELECT coalesce(max(row_id), 0) FROM {table}").get
            connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
            for width in WIDTHS:
                begin = last - width * _UNITS[table]
                if begin < 0:
                    break
                found = rows(f"{table} WHERE {matches} AND row_id > {begin}")
                if len(found) >= limit:
                    return found
                if width == WIDTHS[0]:
                    few = list(db.execute(f"SELECT row_id FROM {table} WHERE {matches} LIMIT {FEW}"))
                    if len(few) < FEW:
                        return sorted({row[0] for row in few}, reverse=True)[:limit]
            return rows(f"{table} WHERE {matches}")

    def having(self, needs: Sequence[Need]) -> set[bytes] | None:
        """Traces that may meet all needs."""
        found = self._reader.one("SELECT bundle FROM done")
        return None if found is None else self._having(needs, found[0], self._reader.all)


def _newest(db: PgDb, sql: str, limit: int) -> list[int]:
    """The first ``limit`` distinct rows of a query. (``DISTINCT`` would sort all rows.)"""
    asked = limit
    while True:
        asked *= 2
        some = [row[0] for row in db.execute(f"{sql} LIMIT {asked}")]
        found = list(dict.fromkeys(some))
        if len(found) >= limit or len(some) < asked:
            return found[:limit]


def _vectors(text: str) -> list[str]:
    """`tsvector` literals of the words with their positions; several if there are many words."""
    words = [word[:LONGEST_WORD] for word in folded_words(text)]
    made: list[str] = []
    for begin in range(0, len(words), WORDS_AT_ONCE):
        positions: dict[str, list[int]] = {}
        for position, word in enumerate(words[begin : begin + WORDS_AT_ONCE + OVERLAP], 1):
            positions.setdefault(word, []).append(position)
        made.append(" ".join(f"{word}:{','.join(map(str, at))}" for word, at in positions.items()))
    return made


def _query(text: str) -> str:
    """A search text as a `tsquery`, which consists only of letters, digits, and operators set here."""
    return " & ".join(
        f"({' <-> '.join(word[:LONGEST_WORD] for word in words)}{':*' if is_prefix else ''})"
        for words, is_prefix in phrases(text)
    )
