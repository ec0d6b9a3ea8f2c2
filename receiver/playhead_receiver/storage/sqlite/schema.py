"""Tables of the SQLite engine, and how a database file is opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from playhead_core.errors import StoreUnavailable
from playhead_receiver.storage.sqlite.database import SqliteDb
from playhead_receiver.storage.sqlite.migration import (
    LINKS,
    LOGS,
    LOOKED,
    TOMBSTONES,
    to_6,
    to_9,
    to_12,
)
from playhead_receiver.system.durable_files import create_database

FILE = "store.sqlite"
VERSION = 15
APPLICATION_ID = 0x706C6864
BUSY_TIMEOUT_MS = 10_000
_READ_ONLY = [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0]
STATEMENTS = 300
"""How many statements of the writer stay prepared: more than it has."""

TABLES = (
    """
-- looked: the position up to which the receiver has examined spans for calls without instrumentation.
CREATE TABLE counter(
    position INTEGER NOT NULL, bundle INTEGER NOT NULL, looked INTEGER NOT NULL DEFAULT 0);
INSERT INTO counter VALUES (0, 0, 0);

CREATE TABLE instance(
    id INTEGER PRIMARY KEY,
    instance BLOB NOT NULL UNIQUE,
    resource BLOB,
    trace_id BLOB NOT NULL,
    span_id BLOB NOT NULL,
    agent TEXT NOT NULL,
    started_ns INTEGER NOT NULL,
    seen_ns INTEGER NOT NULL,
    heartbeat_ns INTEGER NOT NULL,
    exited INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    last_seq INTEGER NOT NULL);

-- The numbers of the stored facts of an instance: one row per range without a gap.
CREATE TABLE fact_range(
    instance INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    PRIMARY KEY(instance, first)) WITHOUT ROWID;

-- The numbers that have aged out, see storage.sql.history; these facts are not in fact_run any more.
CREATE TABLE aged(
    instance INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    PRIMARY KEY(instance, first)) WITHOUT ROWID;

-- Consecutive facts in one frame, except those that have aged out. first and last are in the frame;
-- position is that of the last one.
CREATE TABLE fact_run(
    position INTEGER PRIMARY KEY,
    instance INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    data BLOB NOT NULL, blobs BLOB);
CREATE UNIQUE INDEX fact_run_place ON fact_run(instance, first);
-- Which blobs such a frame needs.
CREATE TABLE blob_use(
    digest BLOB NOT NULL, position INTEGER NOT NULL, PRIMARY KEY(digest, position)) WITHOUT ROWID;

-- The first fact on a tape with the bytes of a digest; for a blob, the facts with its parts.
CREATE TABLE content(
    instance INTEGER NOT NULL, digest BLOB NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY(instance, digest)) WITHOUT ROWID;
CREATE TABLE blob_part(
    instance INTEGER NOT NULL, digest BLOB NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY(instance, digest, seq)) WITHOUT ROWID;

CREATE TABLE exchange(
    instance INTEGER NOT NULL, id TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    PRIMARY KEY(instance, id)) WITHOUT ROWID;

-- The request index of a service: which frames of facts (by their first number) hold facts of a key,
-- and the parent of a lane that is declared there. See storage.runs.request_index.
CREATE TABLE strand(
    instance INTEGER NOT NULL, strand BLOB NOT NULL, first INTEGER NOT NULL, above BLOB,
    PRIMARY KEY(instance, strand, first)) WITHOUT ROWID;
CREATE INDEX strand_above ON strand(instance, above) WHERE above IS NOT NULL;

-- Resources and labels: values that many spans share, and how many do.
CREATE TABLE resource(
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, data BLOB NOT NULL, uses INTEGER NOT NULL);
CREATE TABLE label(id INTEGER PRIMARY KEY, data BLOB NOT NULL UNIQUE, uses INTEGER NOT NULL);

-- Spans of one trace and commit in one frame, without the resource they share. The frames of a
-- finished run are in blocks; then data is null.
CREATE TABLE bundle(id INTEGER PRIMARY KEY, trace_id BLOB NOT NULL, data BLOB, block INTEGER);
CREATE INDEX bundle_trace ON bundle(trace_id);
CREATE INDEX bundle_block ON bundle(block) WHERE block IS NOT NULL;
CREATE TABLE block(id INTEGER PRIMARY KEY, data BLOB NOT NULL);
-- Texts that are needed by bundles of other traces. A bundle without a trace is kept for these alone.
CREATE TABLE text_link(
    target INTEGER NOT NULL, bundle INTEGER NOT NULL, PRIMARY KEY(target, bundle)) WITHOUT ROWID;
-- Texts that later texts may extend.
CREATE TABLE text(digest BLOB PRIMARY KEY, address INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE span(
    position INTEGER PRIMARY KEY,
    trace_id BLOB NOT NULL, span_id BLOB NOT NULL, parent BLOB NOT NULL,
    start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
    failed INTEGER NOT NULL, local_root INTEGER NOT NULL, label INTEGER NOT NULL,
    input INTEGER NOT NULL, cached INTEGER NOT NULL, cache_write INTEGER NOT NULL,
    output INTEGER NOT NULL, reasoning INTEGER NOT NULL,
    resource INTEGER NOT NULL, bundle INTEGER NOT NULL, place INTEGER NOT NULL);
CREATE UNIQUE INDEX span_identity ON span(trace_id, span_id);
CREATE INDEX span_bundle ON span(bundle);

-- Spans that have started and not arrived.
CREATE TABLE pending(
    trace_id BLOB NOT NULL, span_id BLOB NOT NULL, parent BLOB NOT NULL,
    start_ns INTEGER NOT NULL, step INTEGER NOT NULL, model TEXT NOT NULL,
    instance INTEGER NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY(trace_id, span_id)) WITHOUT ROWID;

-- stale: the position of the last change of the summary; 0 while it is up to date.
-- state: success, failure, or open (running or interrupted, which depends on the clock); open-success
-- and open-failure if it has that status unless its root arrives. Null: it has no summary yet.
-- cost: billionths of a dollar, -1 if unknown. loose: the number of its frames that are not in a block.
CREATE TABLE run(
    trace_id BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL, mode TEXT NOT NULL, origin TEXT NOT NULL,
    started_ns INTEGER NOT NULL, arrived_ns INTEGER NOT NULL, conversation TEXT NOT NULL,
    stale INTEGER NOT NULL, state TEXT, duration_ns INTEGER, cost INTEGER, tokens INTEGER,
    steps INTEGER, errors INTEGER, summary BLOB,
    loose INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE INDEX run_age ON run(started_ns DESC, trace_id);
CREATE INDEX run_state ON run(state, started_ns DESC, trace_id);
CREATE INDEX run_cost ON run(cost DESC, trace_id);
CREATE INDEX run_stale ON run(stale) WHERE stale > 0;
CREATE INDEX run_loose ON run(arrived_ns) WHERE loose >= 4;
CREATE INDEX run_origin ON run(origin) WHERE origin <> '';
-- Words by which runs are found: agent, version, environment, conversation, model, provider, tool,
-- error_type.
CREATE TABLE run_word(
    kind INTEGER NOT NULL, word TEXT NOT NULL, started_ns INTEGER NOT NULL, trace_id BLOB NOT NULL,
    PRIMARY KEY(kind, word, started_ns DESC, trace_id)) WITHOUT ROWID;
CREATE INDEX run_word_of ON run_word(trace_id);

CREATE TABLE run_instance(
    trace_id BLOB NOT NULL, instance INTEGER NOT NULL,
    PRIMARY KEY(trace_id, instance)) WITHOUT ROWID;
CREATE INDEX run_instance_of ON run_instance(instance);

-- Marks that users have put on runs, see MARKS in storage.api.retention.
CREATE TABLE mark(
    trace_id BLOB NOT NULL, word TEXT NOT NULL, PRIMARY KEY(trace_id, word)) WITHOUT ROWID;

-- Rows of the search index whose texts (0) or facts (1) were deleted.
CREATE TABLE unsearch(row INTEGER NOT NULL, fact INTEGER NOT NULL);

-- The last number given to a run of an agent; numbers are never reused.
CREATE TABLE agent(word TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;
"""
    + LINKS
    + TOMBSTONES
    + LOGS
)

MIGRATIONS: dict[int, str | Callable[[SqliteDb], None]] = {
    1: """
    ALTER TABLE bundle RENAME TO bundle_1;
    CREATE TABLE bundle(id INTEGER PRIMARY KEY, trace_id BLOB NOT NULL, data BLOB NOT NULL);
    INSERT INTO bundle SELECT bundle_1.id, owner.trace_id, bundle_1.data FROM bundle_1
        JOIN (SELECT bundle, min(trace_id) AS trace_id FROM span GROUP BY bundle) AS owner
        ON owner.bundle = bundle_1.id;
    DROP TABLE bundle_1;
    CREATE INDEX bundle_trace ON bundle(trace_id);
    CREATE TABLE text_link(
        target INTEGER NOT NULL, bundle INTEGER NOT NULL, PRIMARY KEY(target, bundle)) WITHOUT ROWID;
    CREATE TABLE text(digest BLOB PRIMARY KEY, address INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE mark(
        trace_id BLOB NOT NULL, word TEXT NOT NULL, PRIMARY KEY(trace_id, word)) WITHOUT ROWID;
    """,
    2: "CREATE INDEX run_instance_of ON run_instance(instance);",
    3: "CREATE TABLE unsearch(row INTEGER NOT NULL, fact INTEGER NOT NULL);",
    4: "CREATE INDEX span_failed ON span(trace_id) WHERE failed;",
    5: to_6,
    6: """
    DROP INDEX run_stale;
    CREATE INDEX run_stale ON run(stale) WHERE stale > 0;
    ALTER TABLE run ADD COLUMN loose INTEGER NOT NULL DEFAULT 0;
    UPDATE run SET loose = (SELECT count(*) FROM bundle
        WHERE bundle.trace_id = run.trace_id AND data IS NOT NULL);
    CREATE INDEX run_loose ON run(arrived_ns) WHERE loose >= 4;
    """,
    7: """
    CREATE TABLE strand(
        instance INTEGER NOT NULL, strand BLOB NOT NULL, first INTEGER NOT NULL, above BLOB,
        PRIMARY KEY(instance, strand, first)) WITHOUT ROWID;
    CREATE INDEX strand_above ON strand(instance, above) WHERE above IS NOT NULL;
    CREATE INDEX run_origin ON run(origin) WHERE origin <> '';
    """,
    8: to_9,
    9: "CREATE INDEX span_bundle ON span(bundle)",
    10: """
    CREATE TABLE aged(
        instance INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
        PRIMARY KEY(instance, first)) WITHOUT ROWID;
    INSERT INTO strand SELECT DISTINCT instance, x'21', 0, NULL FROM strand;
    """,
    11: to_12,
    12: TOMBSTONES + LOOKED,
    13: LOGS,
    14: "CREATE INDEX run_cost ON run(cost DESC, trace_id)",
}
"""By schema version, the step to the next version: SQL or a function. Forward only."""

FIRST_BYTES = b"SQLite format 3\0"
"""The first bytes of every file that SQLite has written to."""

_DAMAGED = (apsw.CorruptError, apsw.NotADBError)
UNUSABLE = (
    *_DAMAGED,
    OSError,
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.FullError,
    apsw.IOError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
)
"""Errors of SQLite, and of the system, about disk and file."""


@contextmanager
def store_errors(path: Path) -> Generator[None]:
    """Convert SQLite's errors about disk and file to `StoreUnavailable`."""
    try:
        yield
    except UNUSABLE as problem:
        raise unavailable(path, problem) from problem


def unavailable(path: Path, problem: Exception) -> StoreUnavailable:
    """Return the error for one of `UNUSABLE`."""
    if isinstance(problem, _DAMAGED):
        return StoreUnavailable(
            f"the file {path} is damaged and cannot be used",
            cause=str(problem),
            hint="playhead verify shows where; playhead restore FOLDER --data-dir NEW restores a backup",
        )
    return StoreUnavailable(
        f"the store {path} cannot be used",
        cause=str(problem),
        hint="check free space and permissions: playhead doctor",
    )


def open_writer(path: Path) -> SqliteDb:
    """Open the single writing connection. Makes folder and tables if they are missing, and migrates."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        create_database(path)
    except OSError as problem:
        raise StoreUnavailable(f"the store {path} cannot be opened", cause=str(problem)) from problem
    connection = SqliteDb(str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=STATEMENTS)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.pragma("auto_vacuum", "incremental")  # takes effect in a new file only
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("secure_delete", True)  # overwrite deleted content
    version = _version(connection, path)
    if version == 0:
        _require_new(path)
        with connection:
            connection.execute(TABLES)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", VERSION)
    for older in range(version or VERSION, VERSION):
        with connection:
            step = MIGRATIONS[older]
            if callable(step):
                step(connection)
            else:
                connection.execute(step)
            connection.pragma("user_version", older + 1)
    return connection


def is_older(path: Path) -> bool:
    """Whether a database has to be migrated to the current schema before it can be read."""
    try:
        if not path.exists() or not path.stat().st_size:
            return False
        connection = SqliteDb(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return 0 < connection.pragma("user_version") < VERSION
        finally:
            connection.close()
    except (OSError, apsw.Error):
        return False  # opening it will report what is wrong


def open_reader(path: Path) -> SqliteDb:
    """Open a read-only connection. If nothing was ever stored, it reads an empty store."""
    if path.exists() and path.stat().st_size:
        connection = SqliteDb(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        if _version(connection, path):
            return connection
        connection.close()
        _require_new(path)
    connection = SqliteDb(":memory:")
    connection.execute(TABLES)
    return connection


def _require_new(path: Path) -> None:
    """Check that a file without a schema version is a new one. `StoreUnavailable` if it is damaged."""
    # Read by SQLite: a plain `open` and `close` would drop the locks of this process's connections.
    file = apsw.VFSFile("", os.path.realpath(path), _READ_ONLY)
    try:
        begin = file.xRead(min(len(FIRST_BYTES), file.xFileSize()), 0)
    finally:
        file.xClose()
    if begin and begin != FIRST_BYTES:
        raise StoreUnavailable(
            f"the file {path} is damaged and cannot be used",
            cause="its first bytes are not those of a database",
            hint="restore a backup: playhead restore FOLDER --data-dir NEW",
        )


def _version(connection: SqliteDb, path: Path) -> int:
    version = connection.pragma("user_version")
    if version > VERSION:
        connection.close()
        raise StoreUnavailable(
            f"the store {path} has schema {version}; this playhead knows {VERSION}",
            hint="pip install -U playhead",
        )
    return version
