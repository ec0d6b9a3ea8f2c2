"""Full text in tables: words of what is stored once, as `tsvector`.

Words are told apart here, not by the server's parser, so that a search finds the same as in the other
engine: letters and digits make words, case and accents do not matter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from playhead_receiver.store.content.texts import PLACE_BITS, address_of, frame_of, last_address
from playhead_receiver.store.postgres.connections.database import PgDb
from playhead_receiver.store.postgres.connections.locks import Key, lock
from playhead_receiver.store.postgres.connections.reader import Pool
from playhead_receiver.store.protocol.store import Store
from playhead_receiver.store.protocol.upkeep import LOOKED_AT, AskedFor, Hit, Lag
from playhead_receiver.store.runs.attribute_keys import Need
from playhead_receiver.store.sql.reading.reader import Reader
from playhead_receiver.store.sql.search.searcher import FACT_WORDS, TEXT_WORDS, Searcher, phrases
from playhead_semconv.errors import UsageError

if TYPE_CHECKING:
    from playhead_receiver.store.content.references import References

WORDS_AT_ONCE = 8000
"""Words of one row: what PostgreSQL counts in one `tsvector`, half of it."""
OVERLAP = 16
"""Words that stand at the end of one row and at the beginning of the next: for phrases."""
LONGEST_WORD = 100
NEWEST = 2000
"""Rows that are looked through first: what is said often is there, without reading all that say it."""
FEW = 5000
"""Rows that are all fetched, however old they are."""
WIDTHS = (128, 1024, 8192)
"""How far back a word is looked for that is in many rows, but not in the newest: bundles."""
_UNITS = {TEXT_WORDS: 1 << PLACE_BITS, FACT_WORDS: 256}

_WORD = re.compile(r"[^\W_]+")


class PostgresSearch(Searcher):
    """The index of one store, built by one receiver at a time."""

    HAS = "position(? IN keys) > 0"

    def __init__(
        self, pool: Pool, reader: Reader, store: Store, references: References | None = None
    ) -> None:
        super().__init__(reader, store, references)
        self._pool = pool
        self._deletions = 0
        """How many there had been when it was indexed last, by any receiver."""

    def index(self) -> int:
        """Index some of what is not indexed yet; 0 also while another receiver does."""
        try:
            return self._index()
        except BaseException:
            self._signatures.forget()
            raise

    def _index(self) -> int:
        with self._pool.one("BEGIN") as connection:
            db = PgDb(connection)
            if not db.execute(lock("pg_try_advisory_xact_lock", Key.INDEX)).get:
                return 0
            done = db.execute("SELECT done.bundle, done.position, deletions FROM done, counter").get
            bundle, position, deletions = done
            if deletions != self._deletions:
                self._signatures.forget()
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
        """Begin anew. Other receivers hear of it as they do of a deletion."""
        with self._pool.one("BEGIN") as connection:
            connection.execute(lock("pg_advisory_xact_lock", Key.INDEX).encode())
            connection.execute("TRUNCATE text_words, fact_words, signature, unsearch")
            connection.execute("UPDATE done SET bundle = 0, position = 0")
            connection.execute("UPDATE counter SET deletions = deletions + 1")
            connection.execute("COMMIT")
        self._signatures.forget()

    def forget(self) -> None:
        """Take out of the index what was deleted from the store."""
        if self._reader.one("SELECT 1 FROM unsearch LIMIT 1") is None:
            return
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

    def lag(self) -> Lag:
        """What is stored and not indexed yet."""
        bundle, position = self._reader.one("SELECT bundle, position FROM done") or (0, 0)
        return self._lag(bundle, position)

    def search(self, text: str, limit: int, asked_for: AskedFor | None = None) -> list[Hit]:
        """Where all words of ``text`` are said together, newest first."""
        query, most = _query(text), limit if asked_for is None else LOOKED_AT
        found = [self._rows(table, query, most) for table in (TEXT_WORDS, FACT_WORDS)]
        return self._hits(found[0], found[1], text, limit, asked_for)

    def _rows(self, table: str, query: str, limit: int) -> list[int]:
        """The newest rows that match.

        The server alone would look through all rows from the newest on for a word that is in hardly any,
        or fetch all that match to find the newest of a word that is in most.
        """
        matches = f"words @@ CAST('{query}' AS tsquery)"
        newest = f"(SELECT row_id, words FROM {table} ORDER BY row_id DESC LIMIT {NEWEST}) AS newest"
        with self._pool.one("BEGIN") as connection:
            db = PgDb(connection)

            # Numbers stand in the statements: a plan that suits all of them reads too much for each.
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
        """Traces that may have what is needed."""
        found = self._reader.one("SELECT bundle FROM done")
        return None if found is None else self._having(needs, found[0], self._reader.all)


def _newest(db: PgDb, sql: str, limit: int) -> list[int]:
    """The first rows, each once. (``DISTINCT`` would sort all of them.)"""
    asked = limit
    while True:
        asked *= 2
        some = [row[0] for row in db.execute(f"{sql} LIMIT {asked}")]
        found = list(dict.fromkeys(some))
        if len(found) >= limit or len(some) < asked:
            return found[:limit]


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text.casefold())
    bare = (
        "".join(one for one in plain if not unicodedata.combining(one)) if not plain.isascii() else plain
    )
    return [word[:LONGEST_WORD] for word in _WORD.findall(bare)]


def _vectors(text: str) -> list[str]:
    """Words with their places, as PostgreSQL writes them; several where there are many."""
    words = _words(text)
    made: list[str] = []
    for begin in range(0, len(words), WORDS_AT_ONCE):
        places: dict[str, list[int]] = {}
        for place, word in enumerate(words[begin : begin + WORDS_AT_ONCE + OVERLAP], 1):
            places.setdefault(word, []).append(place)
        made.append(" ".join(f"{word}:{','.join(map(str, at))}" for word, at in places.items()))
    return made


def _query(text: str) -> str:
    """What was typed as a `tsquery`: of letters, digits, and signs that are set here."""
    parts: list[str] = []
    for phrase, begins in phrases(text):
        words = _words(phrase)
        if words and begins:
            words[-1] += ":*"
        if words:
            parts.append(f"({' <-> '.join(words)})")
    if not parts:
        raise UsageError("there is no word to search for")
    return " & ".join(parts)
