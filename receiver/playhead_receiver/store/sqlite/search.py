"""Full text over what is stored once, in a file of its own that can be built again at any time.

The row of a text is its address, the row of a fact its position; no text is kept here. What is deleted
from the store is noted there (`unsearch`), in the same transaction, and taken out of the index then.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from playhead_receiver.store.plain import plain_text, words_of_span
from playhead_receiver.store.prepare import open_run
from playhead_receiver.store.protocol import Store, StoredSpan
from playhead_receiver.store.sqlite.reader import Reader
from playhead_receiver.store.sqlite.schema import BUSY_TIMEOUT_MS, speaking_of
from playhead_receiver.store.texts import PLACE_BITS, TEXT, Texts, address_of
from playhead_receiver.store.upkeep import Hit, Lag
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.errors import PlayheadError, UsageError
from playhead_semconv.facts import Fact
from playhead_semconv.otlp import attributes_of

if TYPE_CHECKING:
    from playhead_receiver.derive import Deriver

FILE = "search.sqlite"
AT_ONCE = 64
"""Bundles, and runs of facts, that one transaction indexes."""
LONGEST_BYTES = 4 * 1024 * 1024
"""Of a longer text the beginning is indexed."""
AROUND = 60
"""Characters of a text that are shown on either side of what was found."""

_TABLES = """
CREATE TABLE done(bundle INTEGER NOT NULL, position INTEGER NOT NULL);
INSERT INTO done VALUES (0, 0);
CREATE VIRTUAL TABLE text_words USING fts5(text, content='', contentless_delete=1, tokenize='unicode61');
CREATE VIRTUAL TABLE fact_words USING fts5(text, content='', contentless_delete=1, tokenize='unicode61');
"""
_SAID = frozenset((e.PLAYHEAD_EXCHANGE_REQUEST, e.PLAYHEAD_EFFECT))
"""Facts whose bodies are searched. Responses are searched as spans that they were made into."""
PATIENCE_S = 30.0
"""How long a bundle waits for the facts that its spans refer to."""
_WORD = re.compile(r"\w+")


class Search:
    """The index of one store. Built by whoever writes to the store; asked by anybody."""

    def __init__(self, folder: Path, reader: Reader, store: Store) -> None:
        self._path = folder / FILE
        self._reader = reader
        self._store = store
        self._lock = threading.Lock()
        self._waits = (0, 0.0)
        """The bundle that waits for facts, and until when."""

    def _deriver(self) -> Deriver:
        from playhead_receiver.derive import Deriver  # it reads stores, so it imports them

        return Deriver(self._store)

    # Building

    def index(self) -> int:
        """Index some of what is not indexed yet; how many bundles and runs of facts that were."""
        with self._lock, speaking_of(self._path):
            db = self._open()
            try:
                count = 0
                with db:
                    count = self._index(db)
                return count
            finally:
                db.close()

    def forget(self) -> int:
        """Take out of the index what was deleted from the store, and overwrite it.

        The last row of `unsearch` that need not be remembered any more.
        """
        with self._lock, speaking_of(self._path):
            gone: list[Any] = self._reader.all("SELECT rowid, row, fact FROM unsearch ORDER BY rowid")
            if not gone or not self._path.exists():
                return gone[-1][0] if gone else 0
            db = self._open()
            try:
                with db:
                    for _, row, fact in gone:
                        table = "fact_words" if fact else "text_words"
                        db.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
                    for table in ("fact_words", "text_words"):
                        db.execute(f"INSERT INTO {table}({table}) VALUES ('optimize')")
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                db.close()
            return gone[-1][0]

    def lag(self) -> Lag:
        """What is stored and not indexed yet."""
        done: Any = (0, 0)
        db = self._asking()
        if db is not None:
            done = db.execute("SELECT bundle, position FROM done").get
            db.close()
        bundle, position = done
        bundles = self._reader.one("SELECT count(*) FROM bundle WHERE id > ?", (bundle,))
        runs = self._reader.one("SELECT count(*) FROM fact_run WHERE position > ?", (position,))
        return Lag(bundles[0] if bundles else 0, runs[0] if runs else 0)

    def _open(self) -> apsw.Connection:
        if not self._path.exists():
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        db = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", "normal")
        db.pragma("secure_delete", True)
        if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'done'").get:
            with db:
                db.execute(_TABLES)
        return db

    def _index(self, db: apsw.Connection) -> int:
        done: Any = db.execute("SELECT bundle, position FROM done").get
        bundle, position = done
        bundles = self._reader.all(
            "SELECT id, trace_id FROM bundle WHERE id > ? ORDER BY id LIMIT ?", (bundle, AT_ONCE)
        )
        runs = self._reader.all(
            "SELECT position, last, data, blobs FROM fact_run WHERE position > ?"
            " ORDER BY position LIMIT ?",
            (position, AT_ONCE),
        )
        deriver, texts = self._deriver(), self._reader.texts()
        count = len(runs)
        for id, trace_id in bundles:
            spans = self._spans_of(id, trace_id, texts)
            if self._must_wait(id, spans, deriver):
                break
            for place, words in _words(id, texts.items(id), spans, deriver):
                db.execute(
                    "INSERT OR REPLACE INTO text_words(rowid, text) VALUES (?, ?)",
                    (address_of(id, place), words),
                )
            bundle = id
            count += 1
        for at, last, data, blobs in runs:
            for fact in open_run(data, blobs, self._reader.blobs):
                words = _words_of_fact(fact)
                if words:
                    db.execute(
                        "INSERT OR REPLACE INTO fact_words(rowid, text) VALUES (?, ?)",
                        (at - last + fact.seq, words),
                    )
            position = at
        db.execute("UPDATE done SET bundle = ?, position = ?", (bundle, position))
        return count

    def _spans_of(self, id: int, trace_id: bytes, texts: Texts) -> dict[int, StoredSpan]:
        """The spans of a bundle by their places."""
        rows = self._reader.all(
            "SELECT place, span_id, resource.data FROM span JOIN resource ON resource.id = span.resource"
            " WHERE trace_id = ? AND bundle = ?",
            (trace_id, id),
        )
        found: dict[int, StoredSpan] = {}
        for place, span_id, resource in rows:
            try:
                found[place] = StoredSpan(trace_id, span_id, resource + texts.span(id, place))
            except PlayheadError:  # what cannot be read cannot be found; `verify` says so
                continue
        return found

    def _must_wait(self, id: int, spans: dict[int, StoredSpan], deriver: Deriver) -> bool:
        """Whether facts are still to come that spans of a bundle refer to."""
        if all(not _refers(span) or deriver.is_whole(span) for span in spans.values()):
            return False
        if self._waits[0] != id:
            self._waits = (id, time.monotonic() + PATIENCE_S)
        return time.monotonic() < self._waits[1]

    # Asking

    def search(self, text: str, limit: int) -> list[Hit]:
        """Where all words of ``text`` are said together, newest first."""
        query = _query(text)
        db = self._asking()
        if db is None:
            return []
        texts = list(_matching(db, "text_words", query, limit))
        facts = list(_matching(db, "fact_words", query, limit))
        db.close()
        words = [word.casefold() for word in _WORD.findall(text)]
        hits = [*self._text_hits(texts, words), *self._fact_hits(facts, words)]
        hits.sort(key=lambda hit: hit.time_ns, reverse=True)
        return hits[:limit]

    def _asking(self) -> apsw.Connection | None:
        """A connection that only reads; None while there is no index."""
        if not self._path.exists():
            return None
        with speaking_of(self._path):
            db = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READONLY)
            db.set_busy_timeout(BUSY_TIMEOUT_MS)
            if db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'done'").get:
                return db
            db.close()
        return None

    def _text_hits(self, addresses: list[int], words: list[str]) -> Iterator[Hit]:
        texts = self._reader.texts()
        deriver = self._deriver()
        for address in addresses:
            bundle, place = address >> PLACE_BITS, address & (1 << PLACE_BITS) - 1
            found: Any = self._reader.one(
                "SELECT span.trace_id, span_id, start_ns, place, resource.data FROM bundle"
                " JOIN span ON span.trace_id = bundle.trace_id AND span.bundle = bundle.id"
                " JOIN resource ON resource.id = span.resource"
                " WHERE bundle.id = ? AND place <= ? ORDER BY place DESC LIMIT 1",
                (bundle, place),
            ) or self._reader.one(
                "SELECT span.trace_id, span_id, start_ns, -1, x'' FROM text_link JOIN bundle"
                " ON bundle.id = text_link.bundle JOIN span ON span.trace_id = bundle.trace_id"
                " AND span.bundle = bundle.id WHERE text_link.target = ? ORDER BY place LIMIT 1",
                (address,),
            )
            if found is None:
                continue
            trace_id, span_id, start_ns, at, resource = found
            try:
                if at == place:
                    stored = StoredSpan(trace_id, span_id, resource + texts.span(bundle, place))
                    whole = f"{words_of_span(stored.otlp)} {_answer(deriver, stored)}"
                else:
                    whole = _whole(texts, address, texts.items(bundle)[place] if at >= 0 else None)
            except PlayheadError:
                continue
            yield Hit(trace_id.hex(), span_id.hex(), start_ns, _excerpt(whole, words))

    def _fact_hits(self, positions: list[int], words: list[str]) -> Iterator[Hit]:
        for position in positions:
            found: Any = self._reader.one(
                "SELECT position, last, data, blobs FROM fact_run WHERE position >= ?"
                " ORDER BY position LIMIT 1",
                (position,),
            )
            if found is None:
                continue
            at, last, data, blobs = found
            for fact in open_run(data, blobs, self._reader.blobs):
                if fact.seq == last - at + position and fact.trace_id:
                    excerpt = _excerpt(_words_of_fact(fact), words)
                    yield Hit(fact.trace_id.hex(), fact.span_id.hex(), fact.time_ns, excerpt)


def _words(
    id: int, items: list[Any], spans: dict[int, StoredSpan], deriver: Deriver
) -> Iterator[tuple[int, str]]:
    """What the items of a bundle say, by their places."""
    for place, item in enumerate(items):
        if place in spans:
            yield place, f"{words_of_span(spans[place].otlp)} {_answer(deriver, spans[place])}"
        elif isinstance(item, bytes):
            yield place, plain_text(item[:LONGEST_BYTES])
        elif item is not None and item[0] == TEXT:
            words = " ".join(plain_text(part) for part in item[2:] if isinstance(part, bytes))
            if words:
                yield place, words


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
    """What is typed as FTS5 understands it: words, phrases in quotes, beginnings with a star."""
    parts: list[str] = []
    for phrase, word in re.findall(r'"([^"]*)"|(\S+)', text):
        said = phrase or word.rstrip("*")
        if _WORD.search(said):
            quoted = '"' + said.replace('"', " ") + '"'
            parts.append(quoted + ("*" if word.endswith("*") else ""))
    if not parts:
        raise UsageError("there is no word to search for")
    return " ".join(parts)


def _whole(texts: Texts, address: int, item: Any) -> str:
    if item is None or isinstance(item, bytes):
        return plain_text(texts.text(address))
    return " ".join(plain_text(part) for part in item[2:] if isinstance(part, bytes))


def _words_of_fact(fact: Fact) -> str:
    if fact.name not in _SAID or fact.body is None or not fact.body.inline:
        return ""
    data = fact.body.inline[:LONGEST_BYTES]
    return "" if b"\0" in data[:1024] else plain_text(data)


def _answer(deriver: Deriver, stored: StoredSpan) -> str:
    """What a span that refers to its exchange was answered."""
    if not _refers(stored):
        return ""
    try:
        said = attributes_of(deriver.whole(stored).scope_spans[0].spans[0].attributes)
    except PlayheadError:  # what cannot be read cannot be found; `verify` says so
        return ""
    return plain_text(str(said.get(a.GEN_AI_OUTPUT_MESSAGES, "")).encode())


def _refers(stored: StoredSpan) -> bool:
    return a.PLAYHEAD_WIRE.encode() in stored.otlp


def _excerpt(text: str, words: list[str]) -> str:
    folded = text.casefold() if len(text.casefold()) == len(text) else text.lower()
    at = next((place for word in words if (place := folded.find(word)) >= 0), 0)
    begin, end = max(0, at - AROUND), min(len(text), at + AROUND)
    shown = " ".join(text[begin:end].split())
    return ("…" if begin else "") + shown + ("…" if end < len(text) else "")
