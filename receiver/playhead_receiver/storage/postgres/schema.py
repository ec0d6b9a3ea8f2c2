"""Tables of the PostgreSQL engine: those of the SQLite engine, and tables of blobs and words."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from playhead_core.errors import StoreUnavailable
from playhead_receiver.storage.postgres.database import PgDb
from playhead_receiver.storage.sql.tables.blob_uses import note_uses
from playhead_receiver.storage.sql.tables.integrity import note_unchained

VERSION = 10

_PLACES = """
-- Object stores with large bodies that are not in `blob`, and the owner of these bodies.
CREATE TABLE owner(id text NOT NULL);
INSERT INTO owner VALUES (gen_random_uuid()::text);
CREATE TABLE place(number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, url text NOT NULL UNIQUE);
"""

_SIGNATURES = """
-- Keys of the attributes of a bundle's spans, except those that an older bundle of the trace has.
CREATE TABLE signature(bundle bigint PRIMARY KEY, trace_id bytea NOT NULL, keys bytea NOT NULL);
ALTER TABLE signature ALTER COLUMN keys SET STORAGE EXTERNAL;
"""

_BLOB_USES = """
-- Which blobs a frame of facts needs.
CREATE TABLE blob_use(digest bytea NOT NULL, position bigint NOT NULL, PRIMARY KEY(digest, position));
"""

_AGED = """
-- Numbers of the facts that have aged out.
CREATE TABLE aged(
    instance bigint NOT NULL, first bigint NOT NULL, last bigint NOT NULL, PRIMARY KEY(instance, first));
"""

_LINKS = """
-- The chains of instances, see playhead_core.integrity.
CREATE TABLE link(
    instance bigint NOT NULL, number bigint NOT NULL, brought boolean NOT NULL, said bytea NOT NULL,
    digest bytea NOT NULL, link bytea NOT NULL, digests bytea NOT NULL, PRIMARY KEY(instance, number));
ALTER TABLE link ALTER COLUMN digests SET STORAGE EXTERNAL;
"""

_TOMBSTONES = """
-- What is left of deleted runs, see playhead_core.integrity.tombstones.
CREATE TABLE tombstone(number bigint PRIMARY KEY, said bytea NOT NULL, link bytea NOT NULL);
"""

_LOGS = """
-- Log records of other senders, whose bytes are in bundles.
CREATE TABLE log(
    trace_id bytea NOT NULL, time_ns bigint NOT NULL, digest bytea NOT NULL, span_id bytea NOT NULL,
    level bigint NOT NULL, content boolean NOT NULL,
    resource bigint NOT NULL, bundle bigint NOT NULL, place bigint NOT NULL,
    PRIMARY KEY(trace_id, time_ns, digest));
CREATE INDEX log_content ON log(trace_id, span_id) WHERE content;
CREATE INDEX log_bundle ON log(bundle);
"""

_INDEX_AGAIN = """
TRUNCATE text_words, fact_words;
UPDATE done SET bundle = 0, position = 0;
"""

TABLES = (
    """
CREATE TABLE counter(
    position bigint NOT NULL, bundle bigint NOT NULL,
    writes bigint NOT NULL, deletions bigint NOT NULL, looked bigint NOT NULL DEFAULT 0);
INSERT INTO counter VALUES (0, 0, 0, 0, 0);

CREATE TABLE instance(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    instance bytea NOT NULL UNIQUE,
    resource bytea,
    trace_id bytea NOT NULL,
    span_id bytea NOT NULL,
    agent text NOT NULL,
    started_ns bigint NOT NULL,
    seen_ns bigint NOT NULL,
    heartbeat_ns bigint NOT NULL,
    exited boolean NOT NULL,
    failed boolean NOT NULL,
    last_seq bigint NOT NULL);

CREATE TABLE fact_range(
    instance bigint NOT NULL, first bigint NOT NULL, last bigint NOT NULL,
    PRIMARY KEY(instance, first));

CREATE TABLE fact_run(
    position bigint PRIMARY KEY,
    instance bigint NOT NULL, first bigint NOT NULL, last bigint NOT NULL,
    data bytea NOT NULL, blobs bytea);
CREATE UNIQUE INDEX fact_run_place ON fact_run(instance, first);

CREATE TABLE content(
    instance bigint NOT NULL, digest bytea NOT NULL, seq bigint NOT NULL,
    PRIMARY KEY(instance, digest));
CREATE TABLE blob_part(
    instance bigint NOT NULL, digest bytea NOT NULL, seq bigint NOT NULL,
    PRIMARY KEY(instance, digest, seq));
CREATE TABLE exchange(
    instance bigint NOT NULL, id text NOT NULL, first bigint NOT NULL, last bigint NOT NULL,
    PRIMARY KEY(instance, id));

CREATE TABLE strand(
    instance bigint NOT NULL, strand bytea NOT NULL, first bigint NOT NULL, above bytea,
    PRIMARY KEY(instance, strand, first));
CREATE INDEX strand_above ON strand(instance, above) WHERE above IS NOT NULL;

CREATE TABLE resource(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key bytea NOT NULL UNIQUE, data bytea NOT NULL, uses bigint NOT NULL);
CREATE TABLE label(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key bytea NOT NULL UNIQUE, data bytea NOT NULL, uses bigint NOT NULL);

CREATE TABLE bundle(id bigint PRIMARY KEY, trace_id bytea NOT NULL, data bytea, block bigint);
CREATE INDEX bundle_trace ON bundle(trace_id);
CREATE INDEX bundle_block ON bundle(block) WHERE block IS NOT NULL;
CREATE TABLE block(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data bytea NOT NULL);
CREATE TABLE text_link(target bigint NOT NULL, bundle bigint NOT NULL, PRIMARY KEY(target, bundle));
CREATE TABLE text(digest bytea PRIMARY KEY, address bigint NOT NULL);

CREATE TABLE span(
    position bigint PRIMARY KEY,
    trace_id bytea NOT NULL, span_id bytea NOT NULL, parent bytea NOT NULL,
    start_ns bigint NOT NULL, end_ns bigint NOT NULL,
    failed boolean NOT NULL, local_root boolean NOT NULL, label bigint NOT NULL,
    input bigint NOT NULL, cached bigint NOT NULL, cache_write bigint NOT NULL,
    output bigint NOT NULL, reasoning bigint NOT NULL,
    resource bigint NOT NULL, bundle bigint NOT NULL, place bigint NOT NULL);
CREATE UNIQUE INDEX span_identity ON span(trace_id, span_id);
CREATE INDEX span_bundle ON span(bundle);

CREATE TABLE pending(
    trace_id bytea NOT NULL, span_id bytea NOT NULL, parent bytea NOT NULL,
    start_ns bigint NOT NULL, step boolean NOT NULL, model text NOT NULL,
    instance bigint NOT NULL, seq bigint NOT NULL,
    PRIMARY KEY(trace_id, span_id));

CREATE TABLE run(
    trace_id bytea PRIMARY KEY, name text NOT NULL UNIQUE,
    agent text NOT NULL, mode text NOT NULL, origin text NOT NULL,
    started_ns bigint NOT NULL, arrived_ns bigint NOT NULL, conversation text NOT NULL,
    stale bigint NOT NULL, state text, duration_ns bigint, cost bigint, tokens bigint,
    steps bigint, errors bigint, summary bytea, loose bigint NOT NULL DEFAULT 0);
CREATE INDEX run_age ON run(started_ns DESC, trace_id);
CREATE INDEX run_state ON run(state, started_ns DESC, trace_id);
CREATE INDEX run_stale ON run(stale) WHERE stale > 0;
CREATE INDEX run_unknown ON run(trace_id) WHERE summary IS NULL;
CREATE INDEX run_loose ON run(arrived_ns) WHERE loose >= 4;
CREATE INDEX run_origin ON run(origin COLLATE "C") WHERE origin <> '';
CREATE TABLE run_word(
    kind integer NOT NULL, word text NOT NULL, started_ns bigint NOT NULL, trace_id bytea NOT NULL);
CREATE UNIQUE INDEX run_word_place ON run_word(kind, word, started_ns DESC, trace_id);
CREATE INDEX run_word_of ON run_word(trace_id);

CREATE TABLE run_instance(
    trace_id bytea NOT NULL, instance bigint NOT NULL, PRIMARY KEY(trace_id, instance));
CREATE INDEX run_instance_of ON run_instance(instance);

CREATE TABLE mark(trace_id bytea NOT NULL, word text NOT NULL, PRIMARY KEY(trace_id, word));
CREATE TABLE agent(word text PRIMARY KEY, last bigint NOT NULL);

CREATE TABLE blob(digest bytea PRIMARY KEY, data bytea NOT NULL);

-- The search index. A long text has several rows.
CREATE TABLE done(bundle bigint NOT NULL, position bigint NOT NULL);
INSERT INTO done VALUES (0, 0);
CREATE TABLE text_words(row_id bigint NOT NULL, words tsvector NOT NULL);
CREATE INDEX text_words_row ON text_words(row_id);
CREATE INDEX text_words_said ON text_words USING gin(words);
CREATE TABLE fact_words(row_id bigint NOT NULL, words tsvector NOT NULL);
CREATE INDEX fact_words_row ON fact_words(row_id);
CREATE INDEX fact_words_said ON fact_words USING gin(words);
CREATE TABLE unsearch(
    row_id bigint NOT NULL, fact boolean NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);

-- Frames are compressed already.
ALTER TABLE bundle ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE block ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE fact_run ALTER COLUMN data SET STORAGE EXTERNAL;
"""
    + _PLACES
    + _SIGNATURES
    + _BLOB_USES
    + _AGED
    + _LINKS
    + _TOMBSTONES
    + _LOGS
)


def _to_5(connection: psycopg.Connection) -> None:
    connection.execute(_BLOB_USES)
    note_uses(connection, "%s")


def _to_8(connection: psycopg.Connection) -> None:
    connection.execute(_LINKS)
    note_unchained(PgDb(connection))


MIGRATIONS: dict[int, str | Callable[[psycopg.Connection], None]] = {
    1: _PLACES,
    2: """
    CREATE TABLE strand(
        instance bigint NOT NULL, strand bytea NOT NULL, first bigint NOT NULL, above bytea,
        PRIMARY KEY(instance, strand, first));
    CREATE INDEX strand_above ON strand(instance, above) WHERE above IS NOT NULL;
    CREATE INDEX run_origin ON run(origin COLLATE "C") WHERE origin <> '';
    """,
    3: _SIGNATURES + _INDEX_AGAIN,
    4: _to_5,
    5: "CREATE INDEX span_bundle ON span(bundle)",
    6: _AGED + r"INSERT INTO strand SELECT DISTINCT instance, '\x21'::bytea, 0, NULL::bytea FROM strand",
    7: _to_8,
    8: _TOMBSTONES
    + """
    ALTER TABLE counter ADD COLUMN looked bigint NOT NULL DEFAULT 0;
    UPDATE counter SET looked = position;
    """,
    9: _LOGS,
}
"""By schema version, the step to the next version: SQL or a function. Forward only."""

_LOCK = 0x706C6864
"""Key of the advisory lock around schema changes, so that only one receiver makes them."""


def bring_up_to_date(connection: psycopg.Connection, schema: str, name: str) -> None:
    """Make the tables if they are missing, and migrate an older schema to the current one.

    Receivers of an older version stop writing from then on: they check, see `check_version`.
    """
    if _version(connection, schema) == VERSION:
        return
    with connection.transaction():
        connection.execute("SET LOCAL lock_timeout = 0")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        version = _version(connection, schema)
        if version is None:
            _make(connection, schema, name)
            return
        _refuse_newer(version, name)
        for older in range(version, VERSION):
            if older == version:  # waits for transactions of other writers
                connection.execute("UPDATE counter SET writes = writes + 1, deletions = deletions + 1")
            step = MIGRATIONS[older]
            if callable(step):
                step(connection)
            else:
                connection.execute(step)  # type: ignore[arg-type]
            connection.execute("UPDATE version SET number = %s", (older + 1,))


def check_version(connection: psycopg.Connection, name: str) -> None:
    """`StoreUnavailable` if a newer playhead has changed the tables since."""
    row = connection.execute("SELECT number FROM version").fetchone()
    _refuse_newer(0 if row is None else int(row[0]), name)


def _refuse_newer(version: int, name: str) -> None:
    if version > VERSION:
        raise StoreUnavailable(
            f"the store {name} has schema {version}; this playhead knows {VERSION}",
            hint="pip install -U playhead",
        )


def _version(connection: psycopg.Connection, schema: str) -> int | None:
    """Schema version of the tables; None if there are none."""
    found = connection.execute("SELECT to_regclass(%s)", (f"{_quoted(schema)}.version",)).fetchone()
    if found is None or found[0] is None:
        return None
    row = connection.execute("SELECT number FROM version").fetchone()
    return 0 if row is None else int(row[0])


def _make(connection: psycopg.Connection, schema: str, name: str) -> None:
    encoding = connection.execute("SHOW server_encoding").fetchone()
    if encoding != ("UTF8",):
        raise StoreUnavailable(
            f"the encoding of the database {name} cannot hold every text",
            hint="CREATE DATABASE … ENCODING UTF8",
        )
    # A user without the right to create schemas may still have been given one.
    there = connection.execute("SELECT to_regnamespace(%s)", (_quoted(schema),)).fetchone()
    if there is None or there[0] is None:
        connection.execute(f"CREATE SCHEMA {_quoted(schema)}")  # type: ignore[arg-type]
    connection.execute("CREATE TABLE version(number integer NOT NULL)")
    connection.execute(TABLES)  # type: ignore[arg-type]
    connection.execute("INSERT INTO version VALUES (%s)", (VERSION,))


def _quoted(schema: str) -> str:
    return '"' + schema.replace('"', '""') + '"'
