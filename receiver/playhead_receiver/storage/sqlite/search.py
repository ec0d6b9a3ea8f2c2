"""The full text index, in a file of its own that can be rebuilt at any time.

It contains words of content that is stored once, and no texts. Deletions from the store are noted in
the store (`unsearch`), in the same transaction, and removed from the index afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from playhead_core.errors import StoreUnavailable, UsageError
from playhead_receiver.storage.api.search import MOST_EXAMINED, Hit, Lag, TraceFilter
from playhead_receiver.storage.api.store import Store
from playhead_receiver.storage.content.texts import address_of, frame_of, last_address
from playhead_receiver.storage.content.words import phrases, spaced_words
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.sql.search.searcher import FACT_WORDS, TEXT_WORDS, Searcher
from playhead_receiver.storage.sqlite.logs import empty_log
from playhead_receiver.storage.sqlite.schema import BUSY_TIMEOUT_MS, store_errors
from playhead_receiver.storage.values.run_summaries import Need
from playhead_receiver.storage.writing.recent_bundles import RecentBundles
from playhead_receiver.system.durable_files import create_database

if TYPE_CHECKING:
    from playhead_receiver.storage.content.references import References

FILE = "search.sqlite"

WIPED_AT_ONCE_BYTES = 4 * 1024 * 1024
"""Size up to which a deletion rewrites the index; background maintenance rewrites a larger one."""

_VERSION = 2
_TABLES = """
CREATE TABLE done(bundle INTEGER NOT NULL, position INTEGER NOT NULL);
INSERT INTO done VALUES (0, 0);
CREATE TABLE signature(bundle INTEGER PRIMARY KEY, trace_id BLOB NOT NULL, keys BLOB NOT NULL);
CREATE VIRTUAL TABLE text_words USING fts5(text, content='', contentless_delete=1, tokenize='ascii');
CREATE VIRTUAL TABLE fact_words USING fts5(text, content='', contentless_delete=1, tokenize='ascii');
"""
_TUNING = {"hashsize": 8 * 1024 * 1024, "automerge": 16, "crisismerge": 64}
"""Options of FTS5. A transaction is written as one segment, and segments are merged 16 at a time.

With FTS5's own (1 MiB, 4, 16) a word is written out several times more often.
"""
_REMOVED = "CREATE TABLE IF NOT EXISTS removed(word_table TEXT PRIMARY KEY)"
"""The tables of words from which rows were removed whose words are still in the file."""


class SqliteSearch(Searcher):
    """The index of one store. The writer of the store builds it; any process may query it."""

    HAS = "instr(keys, ?) > 0"

    def __init__(
        self,
        folder: Path,
        reader: SqlReader,
        store: Store,
        recent: RecentBundles,
        references: References | None = None,
    ) -> None:
        super().__init__(reader, store, recent, references)
        self._path = folder / FILE
        self._lock = threading.Lock()
        self.may_hold_removed = True
        """Whether `wipe` may have work; True at the start: the last process may have been killed."""

    # Building

    def index(self) -> int:
        """Index some more of the store; return how many bundles and runs of facts that were.

        A damaged index is deleted and built again.
        """
        with self._lock, _speaking_of(self._path):
            try:
                return self._index_some()
            except (apsw.CorruptError, apsw.NotADBError):
                self._remove()
                return self._index_some()

    def unindex(self) -> None:
        """Delete the index."""
        with self._lock:
            self._remove()

    def _index_some(self) -> int:
        db = self._open()
        try:
            count = 0
            with _transaction(db):
                count = self._index(db)
            return count
        except BaseException:
            self._recent_keys.forget()
            raise
        finally:
            _close(db)

    def _remove(self) -> None:
        for end in ("", "-wal", "-shm"):
            Path(f"{self._path}{end}").unlink(missing_ok=True)
        self._recent_keys.forget()

    def forget(self) -> int:
        """Remove content from the index that was deleted from the store; `wipe` overwrites it.

        Returns the last row of `unsearch` that is done with.
        """
        with self._lock, _speaking_of(self._path):
            gone: list[Any] = self._reader.all("SELECT rowid, row, fact FROM unsearch ORDER BY rowid")
            if not gone or not self._path.exists():
                return gone[-1][0] if gone else 0
            try:
                self._forget_rows(gone)
            except (apsw.CorruptError, apsw.NotADBError):
                self._remove()
            return gone[-1][0]

    def _forget_rows(self, gone: list[Any]) -> None:
        self.may_hold_removed = True
        db = self._open()
        try:
            with _transaction(db):
                for _, row, fact in gone:
                    table = FACT_WORDS if fact else TEXT_WORDS
                    db.execute("INSERT OR IGNORE INTO removed VALUES (?)", (table,))
                    whole = not fact and row == last_address(frame_of(row))
                    first = address_of(frame_of(row), 0) if whole else row
                    db.execute(f"DELETE FROM {table} WHERE rowid BETWEEN ? AND ?", (first, row))
                bundles = {frame_of(row) for _, row, fact in gone if not fact}
                db.executemany("DELETE FROM signature WHERE bundle = ?", [(id,) for id in bundles])
                self._recent_keys.forget()
        finally:
            _close(db)

    def wipe(self, most_bytes: int | None = None) -> bool:
        """Overwrite the words of removed content by rewriting the tables that hold them.

        Returns whether none is left. An index of more than ``most_bytes`` is left as it is.
        """
        with self._lock, _speaking_of(self._path):
            if not self._path.exists():
                self.may_hold_removed = False
                return True
            db = self._open()
            try:
                tables = [row[0] for row in db.execute("SELECT word_table FROM removed")]
                if tables and most_bytes is not None and self._path.stat().st_size > most_bytes:
                    return False
                with _transaction(db):
                    for table in tables:
                        db.execute(f"INSERT INTO {table}({table}) VALUES ('optimize')")
                    db.execute("DELETE FROM removed")
            except (apsw.CorruptError, apsw.NotADBError):
                self._remove()
            finally:
                _close(db)
            self.may_hold_removed = False
            return True

    def empty_log(self) -> bool:
        """Empty the log of the index; False if a reader needs it."""
        with self._lock, _speaking_of(self._path):
            db = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                return empty_log(db)
            finally:
                db.close()

    def lag(self) -> Lag:
        """How much is stored and not indexed yet."""
        done: Any = (0, 0)
        with _speaking_of(self._path):
            db = self._asking()
            if db is not None:
                done = db.execute("SELECT bundle, position FROM done").get
                db.close()
        return self._lag(*done)

    def _open(self) -> apsw.Connection:
        if self._is_older():
            self._remove()
        if not self._path.exists():
            self._recent_keys.forget()
            create_database(self._path)
        db = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", "normal")
        db.pragma("secure_delete", True)
        if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'done'").get:
            with _transaction(db):
                db.execute(_TABLES)
                db.pragma("user_version", _VERSION)
        db.execute(_REMOVED)
        _tune(db)
        return db

    def _is_older(self) -> bool:
        """Whether the index has an older format, in which case it is rebuilt."""
        db = self._asking(0)
        if db is None:
            return False
        version = db.pragma("user_version")
        db.close()
        return version != _VERSION

    def _index(self, db: apsw.Connection) -> int:
        done: Any = db.execute("SELECT bundle, position FROM done").get
        bundle, position = done
        count, bundle, position = self._read_on(
            bundle,
            position,
            lambda table, row, words: (
                db.execute(
                    f"INSERT OR REPLACE INTO {table}(rowid, text) VALUES (?, ?)",
                    (row, spaced_words(words)),
                )
                and None
            ),
            lambda id, trace_id, keys: (
                db.execute("INSERT OR REPLACE INTO signature VALUES (?, ?, ?)", (id, trace_id, keys))
                and None
            ),
        )
        db.execute("UPDATE done SET bundle = ?, position = ?", (bundle, position))
        return count

    # Querying

    def search(self, text: str, limit: int, trace_filter: TraceFilter | None = None) -> list[Hit]:
        """Where all words of ``text`` occur together, newest first."""
        query, most = _query(text), limit if trace_filter is None else MOST_EXAMINED
        with _speaking_of(self._path):
            db = self._asking()
            if db is None:
                return []
            texts = list(_matching(db, TEXT_WORDS, query, most))
            facts = list(_matching(db, FACT_WORDS, query, most))
            db.close()
        return self._hits(texts, facts, text, limit, trace_filter)

    def having(self, needs: Sequence[Need]) -> set[bytes] | None:
        """Traces that may meet all needs; None while there is no index."""
        with _speaking_of(self._path):
            db = self._asking(_VERSION)
            if db is None:
                return None
            try:
                bundle: Any = db.execute("SELECT bundle FROM done").get
                return self._having(needs, bundle, lambda sql, values: db.execute(sql, tuple(values)))
            finally:
                db.close()

    def _asking(self, version: int = 0) -> apsw.Connection | None:
        """A read-only connection; None if there is no index, or its version is below ``version``."""
        if not self._path.exists():
            return None
        db = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READONLY)
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        made = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'done'").get
        if made and db.pragma("user_version") >= version:
            return db
        db.close()
        return None


def _tune(db: apsw.Connection) -> None:
    """Set the options of the tables of words, also of those that an earlier version made."""
    if db.execute(f"SELECT v FROM {FACT_WORDS}_config WHERE k = 'hashsize'").get != _TUNING["hashsize"]:
        with _transaction(db):
            for table, (option, value) in product((TEXT_WORDS, FACT_WORDS), _TUNING.items()):
                db.execute(f"INSERT INTO {table}({table}, rank) VALUES (?, ?)", (option, value))


@contextmanager
def _transaction(db: apsw.Connection) -> Generator[None]:
    """Run a transaction. ``with db`` of apsw holds the GIL during the commit."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _close(db: apsw.Connection) -> None:
    """Checkpoint the log, then close the connection.

    Closing the last connection checkpoints too, but apsw holds the GIL while it closes.
    """
    with suppress(apsw.Error):
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    db.close()


@contextmanager
def _speaking_of(path: Path) -> Generator[None]:
    """As `store_errors`, with another hint: a damaged index can be rebuilt."""
    with store_errors(path):
        try:
            yield
        except (apsw.CorruptError, apsw.NotADBError) as problem:
            raise StoreUnavailable(
                f"the index {path} is damaged",
                cause=str(problem),
                hint="playhead search --rebuild builds it again",
            ) from problem


def _matching(db: apsw.Connection, table: str, query: str, limit: int) -> Iterator[int]:
    try:
        rows: Any = db.execute(
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid DESC LIMIT ?",
            (query, limit),
        )
        for (row,) in rows:
            yield row
    except apsw.SQLError as problem:
        raise UsageError("the search cannot be read", cause=str(problem)) from None


def _query(text: str) -> str:
    """A search text in the syntax of FTS5."""
    return " ".join(
        f'"{" ".join(words)}"' + ("*" if is_prefix else "") for words, is_prefix in phrases(text)
    )
