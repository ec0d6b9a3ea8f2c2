"""Rows that a transaction needs from the tables: looked up together, and cached."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from playhead_receiver.storage.content.texts import frame_of
from playhead_receiver.storage.sql.reading.summaries import label_of
from playhead_receiver.storage.sql.tables.database import Statement
from playhead_receiver.storage.sql.tables.frames import stored_text
from playhead_receiver.storage.sql.tables.integrity import promised
from playhead_receiver.storage.sql.tables.shared_values import RESOURCES, SharedTable
from playhead_receiver.storage.sql.writing.draft import RowDraft, SpanId, Tables
from playhead_receiver.storage.writing.known_instances import COLUMNS, Instance, column_values, recall
from playhead_receiver.storage.writing.prepare import Prepared, PreparedSpan, with_own_id

REMEMBERED = 4096
"""How many instances, runs, resources, labels and bundles are remembered between transactions."""


LogId: TypeAlias = tuple[bytes, int, bytes]
"""Trace id, time and digest."""


class KnownSpan(NamedTuple):
    """A stored span, or one that this transaction stores."""

    end_ns: int
    resource: int
    label: int
    start_ns: int
    served: bool


class KnownRows:
    """Rows that were looked up or written. Used by one thread, in its transactions."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.instances: dict[bytes, Instance] = {}
        """By instance id."""
        self.runs: set[bytes] = set()
        """Trace ids of runs that exist."""
        self.members: dict[bytes, set[int]] = {}
        """Rows of the instances of runs, by trace id."""
        self.spans: dict[SpanId, KnownSpan] = {}
        """Stored spans whose ids come again in this transaction."""
        self.logs: set[LogId] = set()
        """Stored log records that come again in this transaction."""
        self._resources: dict[bytes, int] = {}
        self._labels: dict[bytes, int] = {}
        self._agents: dict[str, int] = {}
        self._owners: dict[int, bytes] = {}

    def forget_rows(self) -> None:
        """Forget what other processes may have changed."""
        for kept in (self.instances, self.runs, self.members, self._agents):
            kept.clear()
        self.forget_shared()

    def forget_bundles(self) -> None:
        """Forget what a deletion may have changed besides."""
        self._owners.clear()

    def forget_shared(self) -> None:
        """Forget the rows of shared values, some of which may have been deleted."""
        self._resources.clear()
        self._labels.clear()

    def look_up(self, batches: Sequence[Prepared], draft: RowDraft) -> None:
        """Look up what these batches need; insert the rows of new instances and shared values."""
        kept = self.instances, self.members, self._resources, self._labels
        if max(map(len, kept)) > REMEMBERED:
            self.forget_rows()
        if len(self._owners) > REMEMBERED:
            self.forget_bundles()
        spans = [span for batch in batches for bundle in batch.bundles for span in bundle.spans]
        instances = {run.instance for batch in batches for run in batch.runs}
        instances |= {instance for batch in batches for instance in batch.resources}
        instances |= {link.instance for batch in batches for link in batch.links}
        instances |= {span.about.instance for span in spans if span.about.instance}
        self._look_up_instances({one for one in instances if one not in self.instances})
        logs = [(bundle, log) for batch in batches for bundle in batch.bundles for log in bundle.logs]
        resources, labels = {span.resource for span in spans}, {span.label for span in spans}
        resources |= {log.resource for _, log in logs}
        self._look_up_shared(RESOURCES, resources, self._resources, draft.resource_uses)
        self._look_up_shared(self._tables.labels, labels, self._labels, draft.label_uses)
        traces = {bundle.trace_id for batch in batches for bundle in batch.bundles}
        traces |= {fact.trace_id for batch in batches for run in batch.runs for fact in run.facts}
        traces |= {self.instances[instance].trace_id for instance in instances}
        self._look_up_runs({one for one in traces if one and one not in self.members})
        self._look_up_spans(spans)
        ids = [(bundle.trace_id, log.time_ns, log.digest) for bundle, log in logs]
        self.logs = {tuple(row) for row in self._tables.execute(_LOGS, ids)}

    def resource(self, value: bytes) -> int:
        """The row of the resource of a span that was looked up."""
        return self._resources[RESOURCES.key_of(value)]

    def label(self, value: bytes) -> int:
        """The row of the label of a span that was looked up."""
        return self._labels[self._tables.labels.key_of(value)]

    def next_number(self, word: str) -> int:
        """The number of the next run of an agent."""
        last = self._agents.get(word)
        if last is None:
            last = self._tables.db.execute("SELECT last FROM agent WHERE word = ?", (word,)).get or 0
        self._agents[word] = last + 1
        return last + 1

    def beginning(self, trace_id: bytes) -> tuple[str, int]:
        """The stored agent of a run that is in the tables, and when the run started."""
        sql = "SELECT agent, started_ns FROM run WHERE trace_id = ?"
        agent, started_ns = next(iter(self._tables.db.execute(sql, (trace_id,))))
        return agent, started_ns

    def add_bundle(self, bundle: int, trace_id: bytes) -> None:
        """Note which trace a new bundle belongs to."""
        self._owners[bundle] = trace_id

    def owners(self, texts: Iterable[int]) -> dict[int, bytes]:
        """Trace ids of the bundles with these texts, by bundle."""
        bundles = {frame_of(address) for address in texts}
        unknown = [bundle for bundle in bundles if bundle not in self._owners]
        if unknown:
            self._owners.update(self._tables.execute(_OWNERS, [(bundle,) for bundle in unknown]))
        return {bundle: self._owners[bundle] for bundle in bundles if bundle in self._owners}

    def known_texts(self, digests: Collection[bytes]) -> set[bytes]:
        """Those of ``digests`` whose texts are in the tables."""
        return {row[0] for row in self._tables.execute(_KNOWN_TEXTS, [(one,) for one in digests])}

    def stored_text(self, digest: bytes) -> int | None:
        """The address of a text in the tables; None if it is not there."""
        return stored_text(self._tables.db, digest)

    # Looking up

    def _look_up_instances(self, unknown: set[bytes]) -> None:
        if not unknown:
            return
        execute = self._tables.execute
        for row in execute(_INSTANCES, [(instance,) for instance in unknown]):
            self.instances[row[0]] = recall(row[1:])
        new = sorted(instance for instance in unknown if instance not in self.instances)
        if new:
            empty = column_values(Instance(0, None))
            for instance, row in execute(_NEW_INSTANCES, [(instance, *empty) for instance in new]):
                self.instances[instance] = Instance(row, None)
        found = {self.instances[instance].row: self.instances[instance] for instance in unknown}
        rows = [(row,) for row in found]
        for (row,) in execute(_SERVING, rows):
            found[row].serves = True
        for row, first, last in execute(_RANGES, rows):
            found[row].firsts.append(first)
            found[row].lasts.append(last)
        for row, number, tip, brought in execute(_TIPS, rows):
            known = found[row]
            known.links, known.tip = number + 1, tip
            known.promised = promised(self._tables.db, row) if brought else []

    def _look_up_shared(
        self, table: SharedTable, values: set[bytes], known: dict[bytes, int], uses: dict[int, int]
    ) -> None:
        """Add the rows of values to ``known``, by key, and to ``uses``; insert those that are new."""
        unknown = [value for value in values if table.key_of(value) not in known]
        if unknown:
            self._tables.execute(table.add, [table.row_of(value) for value in unknown])
            for key, row in self._tables.execute(table.find, [(table.key_of(one),) for one in unknown]):
                known[key] = row
                uses[row] = 0  # deleted again if no span uses it in the end

    def _look_up_runs(self, unknown: set[bytes]) -> None:
        if not unknown:
            return
        rows = [(trace_id,) for trace_id in unknown]
        self.runs |= {row[0] for row in self._tables.execute(_RUNS, rows)}
        self.members.update((trace_id, set()) for trace_id in unknown)
        for trace_id, row in self._tables.execute(_MEMBERS, rows):
            self.members[trace_id].add(row)

    def _look_up_spans(self, spans: Sequence[PreparedSpan]) -> None:
        self.spans.clear()
        while spans:
            ids = [(span.summary.trace_id, span.summary.span_id) for span in spans]
            for trace_id, span_id, end_ns, resource, label, start_ns, about in self._tables.execute(
                _SPANS, ids
            ):
                served = label_of(about).served
                self.spans[trace_id, span_id] = KnownSpan(end_ns, resource, label, start_ns, served)
            spans = [other for span in spans if (other := self.with_distinct_id(span)) is not span]

    def with_distinct_id(self, span: PreparedSpan) -> PreparedSpan:
        """The span, with an id of its own if another span of its trace has its id."""
        summary = span.summary
        known = self.spans.get((summary.trace_id, summary.span_id))
        if known is None:
            return span
        served = summary.label.served
        is_other_side = served != known.served and self.resource(span.resource) != known.resource
        if summary.start_ns == known.start_ns and not is_other_side:
            return span
        return with_own_id(span, below=served and not known.served)


_INSTANCES = Statement(
    "instance:bytes",
    f"SELECT instance, {COLUMNS} FROM instance WHERE instance IN (SELECT instance FROM new)",
)
_NEW_INSTANCES = Statement(
    "instance:bytes trace_id:bytes span_id:bytes agent:text started_ns:int seen_ns:int heartbeat_ns:int"
    " exited:bool failed:bool last_seq:int",
    "INSERT INTO instance(instance, trace_id, span_id, agent, started_ns, seen_ns, heartbeat_ns,"
    " exited, failed, last_seq) SELECT * FROM new WHERE true RETURNING instance, id",
)
_SERVING = Statement(
    "id:int",
    "SELECT id FROM new WHERE EXISTS (SELECT 1 FROM strand WHERE strand.instance = new.id)",
)
_RANGES = Statement(
    "id:int",
    "SELECT instance, first, last FROM fact_range WHERE instance IN (SELECT id FROM new)"
    " ORDER BY instance, first",
)
_TIPS = Statement(
    "id:int",
    "SELECT new.id, last.number, last.link, begin.brought FROM new"
    " JOIN link AS last ON last.instance = new.id"
    " AND last.number = (SELECT max(number) FROM link WHERE link.instance = new.id)"
    " JOIN link AS begin ON begin.instance = new.id AND begin.number = 0",
)
_RUNS = Statement(
    "trace_id:bytes", "SELECT trace_id FROM run WHERE trace_id IN (SELECT trace_id FROM new)"
)
_MEMBERS = Statement(
    "trace_id:bytes",
    "SELECT trace_id, instance FROM run_instance WHERE trace_id IN (SELECT trace_id FROM new)",
)
_SPANS = Statement(
    "trace_id:bytes span_id:bytes",
    "SELECT span.trace_id, span.span_id, end_ns, resource, label, start_ns, label.data FROM span"
    " JOIN label ON label.id = span.label"
    " WHERE (span.trace_id, span.span_id) IN (SELECT trace_id, span_id FROM new)",
)
_LOGS = Statement(
    "trace_id:bytes time_ns:int digest:bytes",
    "SELECT log.trace_id, log.time_ns, log.digest FROM log JOIN new ON log.trace_id = new.trace_id"
    " AND log.time_ns = new.time_ns AND log.digest = new.digest",
)
_OWNERS = Statement("id:int", "SELECT id, trace_id FROM bundle WHERE id IN (SELECT id FROM new)")
_KNOWN_TEXTS = Statement(
    "digest:bytes", "SELECT digest FROM text WHERE digest IN (SELECT digest FROM new)"
)
