"""What a transaction will write: new rows and changes, so that each table gets one statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from playhead_receiver.storage.sql.reading.run_words import KINDS
from playhead_receiver.storage.sql.tables.database import Db, Row, Statement, insert
from playhead_receiver.storage.sql.tables.shared_values import SharedTable
from playhead_receiver.storage.writing.known_instances import Instance, column_values
from playhead_receiver.storage.writing.recent_bundles import RecentBundle

Change: TypeAlias = tuple[Statement, Sequence[Row]]


class Begun(NamedTuple):
    """What a transaction begins with."""

    position: int
    """Position of the last change."""
    bundle: int
    """Number of the last bundle."""
    others_wrote: bool
    """Whether another process has written since the last transaction here."""
    others_deleted: bool
    """Whether what it wrote was a deletion, so that texts may be gone."""


class Tables(Protocol):
    """The tables of an engine in the transactions of one writer."""

    labels: SharedTable

    @property
    def db(self) -> Db:
        """The connection with the transaction."""
        ...

    def begin(self) -> Begun:
        """Read the counters, and lock them if other processes may write."""
        ...

    def execute(self, statement: Statement, rows: Sequence[Row]) -> Iterable[Any]:
        """Execute a statement for all rows, before this returns; what it returns."""
        ...

    def finish(self, changes: Iterable[Change], position: int, bundle: int) -> None:
        """Make all changes, in their order, and write the counters. The caller commits."""
        ...


LATEST_NS = (1 << 63) - 1

SpanId = tuple[bytes, bytes]
"""Trace id and span id."""


class TouchedRun(msgspec.Struct):
    """Changes of a run."""

    started_ns: int
    arrived_ns: int
    stale: int = 0
    conversation: str = ""
    loose: int = 0
    mode: str = ""
    """Empty: unchanged."""
    origin: str = ""
    serves: bool = False


class RowDraft(msgspec.Struct):
    """New rows by table, and changes of rows that are there; the counters as they will be."""

    position: int
    bundle: int
    now_ns: int
    fact_runs: list[Row] = []
    blob_uses: list[Row] = []
    links: list[Row] = []
    ranges: dict[tuple[int, int], int | None] = {}
    """(Instance, first) → last; None if the range has become part of another."""
    contents: dict[tuple[int, bytes], int] = {}
    blob_parts: dict[Row, None] = {}
    exchanges: dict[tuple[int, str], tuple[int, int]] = {}
    entries: list[Row] = []
    instances: dict[int, Instance] = {}
    pending: dict[SpanId, Row] = {}
    come: list[SpanId] = []
    """Arrived spans whose processes record span starts."""
    spans: dict[SpanId, Row] = {}
    replaced: list[SpanId] = []
    logs: list[Row] = []
    bundles: list[Row] = []
    recent: list[tuple[int, RecentBundle]] = []
    """Bundles for the search index, with their numbers."""
    text_links: dict[Row, None] = {}
    texts: dict[bytes, int] = {}
    new_runs: dict[bytes, Row] = {}
    renamed_runs: dict[bytes, Row] = {}
    runs: dict[bytes, TouchedRun] = {}
    run_words: dict[Row, None] = {}
    """Words that come from spans, logs and facts. Others are those of the summaries of runs."""
    members: dict[Row, None] = {}
    agents: dict[str, int] = {}
    resource_uses: dict[int, int] = {}
    """How many more spans and log records use a row."""
    label_uses: dict[int, int] = {}

    def use(self, resource: int, label: int | None, count: int) -> None:
        """Note that ``count`` more spans use these rows; without a label, log records."""
        self.resource_uses[resource] = self.resource_uses.get(resource, 0) + count
        if label is not None:
            self.label_uses[label] = self.label_uses.get(label, 0) + count

    def frees(self) -> bool:
        """Whether some resource or label may have no use afterwards."""
        uses = self.resource_uses, self.label_uses
        return any(min(some.values(), default=1) <= 0 for some in uses)

    def run(self, trace_id: bytes) -> TouchedRun:
        """The changes of a run, which may be none so far."""
        run = self.runs.get(trace_id)
        if run is None:
            run = self.runs[trace_id] = TouchedRun(LATEST_NS, self.now_ns)
        return run

    def add_words(self, trace_id: bytes, words: Iterable[tuple[str, str]], started_ns: int) -> None:
        """Note words by which a run is found, each with its kind."""
        for kind, word in words:
            self.run_words[KINDS[kind], word, started_ns, trace_id] = None

    def changes(self) -> Iterator[Change]:
        """The statements with their rows, in the order in which they must be executed."""
        yield _FACT_RUNS, self.fact_runs
        yield _BLOB_USES, self.blob_uses
        yield _LINKS, self.links
        yield _OLD_RANGES, [key for key, last in self.ranges.items() if last is None]
        yield _RANGES, [(*key, last) for key, last in self.ranges.items() if last is not None]
        yield _CONTENTS, [(*key, seq) for key, seq in self.contents.items()]
        yield _BLOB_PARTS, list(self.blob_parts)
        yield _EXCHANGES, [(*key, *ends) for key, ends in self.exchanges.items()]
        yield _REQUEST_INDEX, self.entries
        yield (
            _INSTANCES,
            [(one.row, one.resource, *column_values(one)) for one in self.instances.values()],
        )
        yield _REPLACED, self.replaced
        yield _SPANS, list(self.spans.values())
        yield _PENDING, list(self.pending.values())
        yield _COME, self.come
        yield _LOGS, self.logs
        yield _BUNDLES, self.bundles
        yield _TEXT_LINKS, list(self.text_links)
        yield _TEXTS, list(self.texts.items())
        yield _NEW_RUNS, list(self.new_runs.values())
        yield _RENAMED_RUNS, list(self.renamed_runs.values())
        yield _RUNS, [(trace_id, *msgspec.structs.astuple(run)) for trace_id, run in self.runs.items()]
        yield _RUN_WORDS, list(self.run_words)
        yield _MEMBERS, list(self.members)
        yield _AGENTS, list(self.agents.items())
        for table, uses in (("resource", self.resource_uses), ("label", self.label_uses)):
            yield _USES[table], list(uses.items())
            yield _UNUSED[table], [(row,) for row, count in uses.items() if count <= 0]


_FACT_RUNS = insert("fact_run", "position:int instance:int first:int last:int data:bytes blobs:bytes")
_BLOB_USES = insert("blob_use", "digest:bytes position:int")
_LINKS = insert(
    "link", "instance:int number:int brought:bool said:bytes digest:bytes link:bytes digests:bytes"
)
"""Links are never replaced: a number that exists already is an error."""
_OLD_RANGES = Statement(
    "instance:int first:int",
    "DELETE FROM fact_range WHERE (instance, first) IN (SELECT instance, first FROM new)",
)
_RANGES = insert(
    "fact_range",
    "instance:int first:int last:int",
    conflict="(instance, first) DO UPDATE SET last = excluded.last",
)
_CONTENTS = insert("content", "instance:int digest:bytes seq:int", conflict="DO NOTHING")
_BLOB_PARTS = insert("blob_part", "instance:int digest:bytes seq:int", conflict="DO NOTHING")
_EXCHANGES = insert(
    "exchange",
    "instance:int id:text first:int last:int",
    conflict="(instance, id) DO UPDATE SET"
    " first = CASE WHEN excluded.first < exchange.first THEN excluded.first ELSE exchange.first END,"
    " last = CASE WHEN excluded.last > exchange.last THEN excluded.last ELSE exchange.last END",
)
_REQUEST_INDEX = insert(
    "strand", "instance:int strand:bytes first:int above:bytes", conflict="DO NOTHING"
)
_INSTANCES = Statement(
    "id:int resource:bytes trace_id:bytes span_id:bytes agent:text started_ns:int seen_ns:int"
    " heartbeat_ns:int exited:bool failed:bool last_seq:int",
    "UPDATE instance SET resource = new.resource, trace_id = new.trace_id, span_id = new.span_id,"
    " agent = new.agent, started_ns = new.started_ns, seen_ns = new.seen_ns,"
    " heartbeat_ns = new.heartbeat_ns, exited = new.exited, failed = new.failed,"
    " last_seq = new.last_seq FROM new WHERE instance.id = new.id",
)
_REPLACED = Statement(
    "trace_id:bytes span_id:bytes",
    "DELETE FROM span WHERE (trace_id, span_id) IN (SELECT trace_id, span_id FROM new)",
)
_SPANS = insert(
    "span",
    "position:int trace_id:bytes span_id:bytes parent:bytes start_ns:int end_ns:int failed:bool"
    " local_root:bool label:int input:int cached:int cache_write:int output:int reasoning:int"
    " resource:int bundle:int place:int",
)
_LOGS = insert(
    "log",
    "trace_id:bytes time_ns:int digest:bytes span_id:bytes level:int content:bool"
    " resource:int bundle:int place:int",
)
_PENDING = Statement(
    "trace_id:bytes span_id:bytes parent:bytes start_ns:int step:bool model:text instance:int seq:int",
    "INSERT INTO pending(trace_id, span_id, parent, start_ns, step, model, instance, seq)"
    " SELECT * FROM new WHERE NOT EXISTS (SELECT 1 FROM span WHERE span.trace_id = new.trace_id"
    " AND span.span_id = new.span_id) ON CONFLICT DO NOTHING",
)
_COME = Statement(
    "trace_id:bytes span_id:bytes",
    "DELETE FROM pending WHERE (trace_id, span_id) IN (SELECT trace_id, span_id FROM new)",
)
_BUNDLES = insert("bundle", "id:int trace_id:bytes data:bytes")
_TEXT_LINKS = insert("text_link", "target:int bundle:int", conflict="DO NOTHING")
_TEXTS = insert(
    "text", "digest:bytes address:int", conflict="(digest) DO UPDATE SET address = excluded.address"
)
_NEW_RUNS = Statement(
    "trace_id:bytes name:text agent:text started_ns:int arrived_ns:int stale:int",
    "INSERT INTO run(trace_id, name, agent, started_ns, arrived_ns, stale, mode, origin, conversation)"
    " SELECT new.*, 'record', '', '' FROM new",
)
_RENAMED_RUNS = Statement(
    "trace_id:bytes name:text agent:text",
    "UPDATE run SET name = new.name, agent = new.agent FROM new WHERE run.trace_id = new.trace_id",
)
_RUNS = Statement(
    "trace_id:bytes started_ns:int arrived_ns:int stale:int conversation:text loose:int mode:text"
    " origin:text serves:bool",
    "UPDATE run SET arrived_ns = new.arrived_ns, loose = run.loose + new.loose,"
    " started_ns = CASE WHEN new.started_ns < run.started_ns"
    " THEN new.started_ns ELSE run.started_ns END,"
    " stale = CASE WHEN new.stale > run.stale THEN new.stale ELSE run.stale END,"
    " conversation = CASE WHEN run.conversation = '' THEN new.conversation ELSE run.conversation END,"
    " origin = CASE WHEN new.mode = '' THEN run.origin ELSE new.origin END,"
    # A child that serves may be heard of before the process that began the run.
    " mode = CASE WHEN (new.serves OR run.mode = 'service')"
    " AND coalesce(nullif(new.mode, ''), run.mode) IN ('record', 'service')"
    " THEN 'service' WHEN new.mode = '' THEN run.mode ELSE new.mode END"
    " FROM new WHERE run.trace_id = new.trace_id",
)
_RUN_WORDS = insert(
    "run_word", "kind:int word:text started_ns:int trace_id:bytes", conflict="DO NOTHING"
)
_MEMBERS = insert("run_instance", "trace_id:bytes instance:int", conflict="DO NOTHING")
_AGENTS = insert("agent", "word:text last:int", conflict="(word) DO UPDATE SET last = excluded.last")
_USES = {
    table: Statement(
        "id:int count:int",
        f"UPDATE {table} SET uses = uses + new.count FROM new WHERE {table}.id = new.id",
    )
    for table in ("resource", "label")
}
_UNUSED = {
    table: Statement("id:int", f"DELETE FROM {table} WHERE uses <= 0 AND id IN (SELECT id FROM new)")
    for table in ("resource", "label")
}
