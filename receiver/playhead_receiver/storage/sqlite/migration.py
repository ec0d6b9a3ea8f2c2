"""Schema migrations that take more than SQL."""

from __future__ import annotations

from typing import Any

from playhead_core.errors import PlayheadError
from playhead_genai.run_fields import CONVERSATION
from playhead_receiver.storage.content.texts import Texts
from playhead_receiver.storage.spans.span_view import open_frame, parse_span, resource_summary, summarize
from playhead_receiver.storage.sql.reading.run_words import KINDS
from playhead_receiver.storage.sql.tables.blob_uses import note_uses
from playhead_receiver.storage.sql.tables.frames import frames_at
from playhead_receiver.storage.sql.tables.integrity import note_unchained
from playhead_receiver.storage.sqlite.database import SqliteDb
from playhead_receiver.storage.values.span_labels import Label, Usage
from playhead_receiver.storage.writing.prepare import encode_label

_TO_6 = """
ALTER TABLE resource ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
UPDATE resource SET uses = (SELECT count(*) FROM span WHERE span.resource = resource.id);
CREATE TABLE label(id INTEGER PRIMARY KEY, data BLOB NOT NULL UNIQUE, uses INTEGER NOT NULL);

ALTER TABLE bundle RENAME TO bundle_5;
DROP INDEX bundle_trace;
CREATE TABLE bundle(id INTEGER PRIMARY KEY, trace_id BLOB NOT NULL, data BLOB, block INTEGER);
INSERT INTO bundle SELECT id, trace_id, data, NULL FROM bundle_5;
DROP TABLE bundle_5;
CREATE INDEX bundle_trace ON bundle(trace_id);
CREATE INDEX bundle_block ON bundle(block) WHERE block IS NOT NULL;
CREATE TABLE block(id INTEGER PRIMARY KEY, data BLOB NOT NULL);

ALTER TABLE span RENAME TO span_5;
DROP INDEX span_identity;
DROP INDEX span_failed;
CREATE TABLE span(
    position INTEGER PRIMARY KEY,
    trace_id BLOB NOT NULL, span_id BLOB NOT NULL, parent BLOB NOT NULL,
    start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
    failed INTEGER NOT NULL, local_root INTEGER NOT NULL, label INTEGER NOT NULL,
    input INTEGER NOT NULL, cached INTEGER NOT NULL, cache_write INTEGER NOT NULL,
    output INTEGER NOT NULL, reasoning INTEGER NOT NULL,
    resource INTEGER NOT NULL, bundle INTEGER NOT NULL, place INTEGER NOT NULL);

ALTER TABLE run RENAME TO run_5;
DROP INDEX run_age;
CREATE TABLE run(
    trace_id BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL, mode TEXT NOT NULL, origin TEXT NOT NULL,
    started_ns INTEGER NOT NULL, arrived_ns INTEGER NOT NULL, conversation TEXT NOT NULL,
    stale INTEGER NOT NULL, state TEXT, duration_ns INTEGER, cost INTEGER, tokens INTEGER,
    steps INTEGER, errors INTEGER, summary BLOB) WITHOUT ROWID;
INSERT INTO run SELECT trace_id, name, agent, mode, origin, started_ns, arrived_ns, '', 1,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM run_5;
DROP TABLE run_5;
CREATE INDEX run_age ON run(started_ns DESC, trace_id);
CREATE INDEX run_state ON run(state, started_ns DESC, trace_id);
CREATE INDEX run_stale ON run(stale) WHERE stale > 0;
CREATE TABLE run_word(
    kind INTEGER NOT NULL, word TEXT NOT NULL, started_ns INTEGER NOT NULL, trace_id BLOB NOT NULL,
    PRIMARY KEY(kind, word, started_ns DESC, trace_id)) WITHOUT ROWID;
CREATE INDEX run_word_of ON run_word(trace_id);
"""

LINKS = """
-- The hash chains of instances, see playhead_core.integrity: the statement of each link, and the digests
-- of the facts that it covers. brought: imported with the run, before its facts.
CREATE TABLE link(
    instance INTEGER NOT NULL, number INTEGER NOT NULL, brought INTEGER NOT NULL, said BLOB NOT NULL,
    digest BLOB NOT NULL, link BLOB NOT NULL, digests BLOB NOT NULL);
CREATE UNIQUE INDEX link_place ON link(instance, number);
"""

TOMBSTONES = """
-- What is left of deleted runs, see playhead_core.integrity.tombstones.
CREATE TABLE tombstone(number INTEGER PRIMARY KEY, said BLOB NOT NULL, link BLOB NOT NULL);
"""


LOGS = """
-- Log records of other senders; their bytes are in bundles. content: an event with messages of a call.
CREATE TABLE log(
    trace_id BLOB NOT NULL, time_ns INTEGER NOT NULL, digest BLOB NOT NULL, span_id BLOB NOT NULL,
    level INTEGER NOT NULL, content INTEGER NOT NULL,
    resource INTEGER NOT NULL, bundle INTEGER NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY(trace_id, time_ns, digest)) WITHOUT ROWID;
CREATE INDEX log_content ON log(trace_id, span_id) WHERE content;
CREATE INDEX log_bundle ON log(bundle);
"""


def to_6(db: SqliteDb) -> None:
    """Read every span again for what version 6 stores of it: labels, kinds of tokens, conversations."""
    db.execute(_TO_6)
    texts = Texts(lambda id: frames_at(db, id))
    rows: Any = db.execute(
        "SELECT span_5.*, resource.data FROM span_5 LEFT JOIN resource ON resource.id = resource"
    )
    for *row, resource_data in rows:
        trace_id, attempt, step, model, given, taken, _, bundle, place = row[1], *row[8:]
        try:
            about, span = open_frame((resource_data or b"") + texts.span(bundle, place))
            found = summarize(parse_span(span))
            label, usage = found.label, found.usage
            words = (*found.words, *resource_summary(about).words)
        except PlayheadError:  # damaged; `verify` reports it
            label, usage = Label(bool(attempt), bool(step), model), Usage(given, 0, 0, taken)
            words = ()
        number: Any = db.execute(
            "INSERT INTO label VALUES (NULL, ?, 1)"
            " ON CONFLICT DO UPDATE SET uses = uses + 1 RETURNING id",
            (encode_label(label),),
        ).get
        tokens = usage.input, usage.cached, usage.cache_write, usage.output, usage.reasoning
        db.execute(f"INSERT INTO span VALUES (?{', ?' * 16})", (*row[:8], number, *tokens, *row[13:]))
        for field, word in words:
            if field == CONVERSATION:
                db.execute(
                    "UPDATE run SET conversation = ? WHERE trace_id = ? AND conversation = ''",
                    (word, trace_id),
                )
            db.execute(
                "INSERT OR IGNORE INTO run_word SELECT ?, ?, started_ns, trace_id FROM run"
                " WHERE trace_id = ?",
                (KINDS[field], word, trace_id),
            )
    db.execute("DROP TABLE span_5; CREATE UNIQUE INDEX span_identity ON span(trace_id, span_id)")


def to_9(db: SqliteDb) -> None:
    """Add the table that says which facts need which blobs, and fill it."""
    db.execute(
        "CREATE TABLE blob_use(digest BLOB NOT NULL, position INTEGER NOT NULL,"
        " PRIMARY KEY(digest, position)) WITHOUT ROWID"
    )
    note_uses(db)


def to_12(db: SqliteDb) -> None:
    """Add chains; the first links say that the stored facts are older."""
    db.execute(LINKS)
    note_unchained(db)


LOOKED = """
-- The receiver derives attributes of requests that arrive from now on; for older ones use rederive.
ALTER TABLE counter ADD COLUMN looked INTEGER NOT NULL DEFAULT 0;
UPDATE counter SET looked = position;
"""
