"""Writes prepared batches into the tables, inside the writer's transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

import apsw

from playhead_receiver.store.content.blobs import Blobs
from playhead_receiver.store.content.packing import Frame, TextIndex
from playhead_receiver.store.content.texts import frame_of
from playhead_receiver.store.runs.naming import agent_word
from playhead_receiver.store.spans.span_view import SpanSummary
from playhead_receiver.store.sql.reading.summaries import span_row
from playhead_receiver.store.sql.tables.blob_uses import uses_of
from playhead_receiver.store.sql.tables.kept_texts import stored_text
from playhead_receiver.store.sql.tables.shared_values import Shared
from playhead_receiver.store.sqlite.instances import Instances
from playhead_receiver.store.values.stored import Receipt
from playhead_receiver.store.writing.chain_linking import brought_link, links_for
from playhead_receiver.store.writing.fact_rows import PROCESS_FACTS, fresh, part_digest, pending_row
from playhead_receiver.store.writing.known_instances import Instance, agent_of, text_of
from playhead_receiver.store.writing.prepare import Bundle, FactRun, Prepared, PreparedSpan, resource_key
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.facts import Fact
from playhead_semconv.tape.span_starts import starts_of

ROWS_AT_ONCE = 256
"""Rows that one statement inserts."""
REMEMBERED = 4096
"""How many instances, runs and resources are cached between commits."""


class Rows:
    """Writes rows for the writer, with caches of what the tables hold. Used by one thread.

    Call `begin`, then `write`; call `forget` after a rollback, when the caches may be wrong.
    """

    def __init__(self, connection: apsw.Connection, blobs: Blobs) -> None:
        self._db = connection
        self._blobs = blobs
        self._instances = Instances(connection)
        self._resources = Shared(connection, "resource")
        self._labels = Shared(connection, "label")
        self._runs: set[bytes] = set()
        self._members: set[tuple[bytes, int]] = set()
        self._texts = TextIndex(self._stored_text, self._store_text)
        self._new_texts: list[tuple[bytes, int]] = []
        self._traces: dict[int, bytes] = {}
        self.position = 0
        self._bundle = 0
        self._counted = False

    def begin(self) -> None:
        """Call once per transaction, inside it."""
        if not self._counted:
            row: Any = self._db.execute("SELECT position, bundle FROM counter").get
            self.position, self._bundle = row
            self._counted = True

    def forget(self) -> None:
        """Empty all caches. Reads nothing, as the disk may have failed."""
        self._instances.forget()
        self._resources.forget()
        self._labels.forget()
        self._runs.clear()
        self._members.clear()
        self._texts.clear()
        self._new_texts.clear()
        self._traces.clear()
        self._counted = False

    def write(self, prepared: Prepared) -> Receipt:
        """Write one batch. The caller holds the transaction."""
        now_ns = time.time_ns()
        if len(self._instances) > REMEMBERED:
            self._instances.forget()
        for kept in (self._runs, self._members, self._traces):
            if len(kept) > REMEMBERED:
                kept.clear()
        for instance, resource in prepared.resources.items():
            self._instances.set_resource(instance, resource)
        for link in prepared.links:
            row = brought_link(self._instances.get(link.instance), link)
            if row is not None:
                self._add_links([row])
        facts_new = sum(self._write_facts(run, now_ns) for run in prepared.runs)
        spans_new = sum(self._write_bundle(bundle, now_ns) for bundle in prepared.bundles)
        return Receipt(spans_new, facts_new, self.position)

    def write_counters(self) -> None:
        """Write counters and counts. Call once per transaction, before it ends."""
        self._insert("text", list(dict(self._new_texts).items()))
        self._new_texts.clear()
        self._resources.write_uses()
        self._labels.write_uses()
        self._db.execute("UPDATE counter SET position = ?, bundle = ?", (self.position, self._bundle))

    # Facts

    def _write_facts(self, run: FactRun, now_ns: int) -> int:
        known = self._instances.get(run.instance)
        new = fresh(known, run, self._blobs)
        for part in new:
            self.position += len(part.facts)
            self._db.execute(
                "INSERT INTO fact_run VALUES (?, ?, ?, ?, ?, ?)",
                (self.position, known.row, part.first, part.last, part.data, part.blobs),
            )
            if part.blobs is not None:
                self._insert("blob_use", uses_of(self.position, part.blobs))
            self._add_links(links_for(known, part, now_ns))
            self._instances.extend_range(known, part.first, part.last)
            self._index(known, part.facts, now_ns)
        return sum(len(part.facts) for part in new)

    def _index(self, known: Instance, facts: list[Fact], now_ns: int) -> None:
        exchanges: dict[str, tuple[int, int]] = {}
        traces: dict[bytes, Fact] = {}
        changed: set[bytes] = set()
        strands = known.strands(facts)
        for fact in facts:
            if fact.exchange is not None:
                id = str(fact.exchange)
                first = exchanges[id][0] if id in exchanges else fact.seq
                exchanges[id] = (first, fact.seq)
            if fact.trace_id and fact.trace_id not in traces:
                traces[fact.trace_id] = fact
            if fact.name == e.PLAYHEAD_BLOB:
                digest = part_digest(fact)
                if digest is not None:
                    row = known.row, digest, fact.seq
                    self._db.execute("INSERT OR IGNORE INTO blob_part VALUES (?, ?, ?)", row)
            elif fact.body is not None and fact.body.tells:
                self._db.execute(
                    "INSERT OR IGNORE INTO content VALUES (?, ?, ?)",
                    (known.row, fact.body.digest, fact.seq),
                )
            if fact.name in PROCESS_FACTS:
                known.fold(fact)
                if fact.name != e.PLAYHEAD_PROCESS_HEARTBEAT:
                    changed.add(known.trace_id)
            elif fact.trace_id:
                for start in starts_of(fact):
                    self._start_span(known, start)
                    changed.add(fact.trace_id)
        for id, (first, last) in exchanges.items():
            self._db.execute(
                "INSERT INTO exchange VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
                " SET first = min(first, excluded.first), last = max(last, excluded.last)",
                (known.row, id, first, last),
            )
        latest = min(max(fact.time_ns for fact in facts), now_ns)
        known.seen_ns = max(known.seen_ns, latest)
        if not known.started_ns:
            known.started_ns = facts[0].time_ns
        self._instances.save(known)
        for trace_id, first in traces.items():
            agent = agent_of(first) or known.name()
            self._touch_run(trace_id, agent, first.time_ns, now_ns)
            if self._join(trace_id, known):
                changed.add(trace_id)
        for trace_id in changed:
            self._db.execute("UPDATE run SET stale = ? WHERE trace_id = ?", (self.position, trace_id))
        for fact in facts:
            # The start of a child process says nothing about the run.
            child = a.PLAYHEAD_PROCESS_PARENT_INSTANCE in fact.attributes
            if fact.name == e.PLAYHEAD_PROCESS_START and fact.trace_id and not child:
                self._db.execute(
                    "UPDATE run SET mode = ?, origin = ? WHERE trace_id = ?",
                    (
                        text_of(fact, a.PLAYHEAD_RUN_MODE) or "record",
                        text_of(fact, a.PLAYHEAD_RUN_ORIGIN),
                        fact.trace_id,
                    ),
                )
        if strands:
            self._insert("strand", [(known.row, one, facts[0].seq, up) for one, up in strands.items()])
        if known.begins_runs(facts):
            self._db.execute(
                "UPDATE run SET mode = 'service' WHERE trace_id = ? AND mode = 'record'",
                (known.trace_id,),
            )

    def _start_span(self, known: Instance, fact: Fact) -> None:
        self._db.execute(
            "INSERT OR IGNORE INTO pending SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8"
            " WHERE NOT EXISTS (SELECT 1 FROM span WHERE trace_id = ?1 AND span_id = ?2)",
            pending_row(known, fact),
        )

    # Spans

    def _write_bundle(self, bundle: Bundle, now_ns: int) -> int:
        number = self._bundle + 1
        frame = Frame(self._texts, number)
        ends = self._ends(bundle)
        rows: list[tuple[Any, ...]] = []
        for span in bundle.spans:
            if span.summary.span_id in ends and not self._replaces(span.summary, ends):
                continue
            self.position += 1
            rows.append(self._span_row(span, number, frame.next_place))
            frame.add_span(span.cut)
        if not rows:
            return 0
        self._bundle = number
        self._insert("span", rows)
        self._db.execute(
            "INSERT INTO bundle VALUES (?, ?, ?, NULL)", (number, bundle.trace_id, frame.data())
        )
        self._link(number, bundle.trace_id, frame.refers_to)
        agent = talk = ""
        for span in bundle.spans:
            talk = talk or span.summary.conversation
            if span.about.instance:
                known = self._instances.get(span.about.instance)
                self._join(bundle.trace_id, known)
                agent = agent or known.name()
                self._db.execute(
                    "DELETE FROM pending WHERE trace_id = ? AND span_id = ?",
                    (bundle.trace_id, span.summary.span_id),
                )
        started_ns = min(span.summary.start_ns for span in bundle.spans)
        self._touch_run(bundle.trace_id, bundle.agent(agent), started_ns, now_ns, self.position, talk)
        return sum(row[2] not in ends for row in rows)

    def _ends(self, bundle: Bundle) -> dict[bytes, int]:
        """End times of those of a bundle's spans that are stored already, by span id."""
        ends: dict[bytes, int] = {}
        for spans in batched(bundle.spans, ROWS_AT_ONCE):
            found: Any = self._db.execute(
                "SELECT span_id, end_ns FROM span WHERE trace_id = ?"
                f" AND span_id IN (?{', ?' * (len(spans) - 1)})",
                (bundle.trace_id, *(span.summary.span_id for span in spans)),
            )
            ends.update(found)
        return ends

    def _replaces(self, about: SpanSummary, ends: dict[bytes, int]) -> bool:
        """Whether a span replaces the stored one; if so, the stored row is deleted."""
        if about.end_ns <= ends[about.span_id]:
            return False
        found: Any = self._db.execute(
            "DELETE FROM span WHERE trace_id = ? AND span_id = ? RETURNING resource, label",
            (about.trace_id, about.span_id),
        ).get
        self._resources.use(found[0], -1)
        self._labels.use(found[1], -1)
        return True

    def _insert(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        """Insert many rows with few statements. Other threads may run only between two statements."""
        for some in batched(rows, ROWS_AT_ONCE):
            row = f"(?{', ?' * (len(some[0]) - 1)})"
            self._db.execute(
                f"INSERT OR REPLACE INTO {table} VALUES {row}{(', ' + row) * (len(some) - 1)}",
                tuple(chain.from_iterable(some)),
            )

    def _add_links(self, rows: list[tuple[Any, ...]]) -> None:
        """Insert links. They are never replaced: a number that exists already is an error."""
        self._db.executemany("INSERT INTO link VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def _span_row(self, span: PreparedSpan, bundle: int, place: int) -> tuple[Any, ...]:
        resource = self._resources.row(resource_key(span.resource), span.resource)
        label = self._labels.row(span.label, None)
        self._resources.use(resource)
        self._labels.use(label)
        return span_row(self.position, span, label, resource, bundle, place)

    # Texts

    def _link(self, bundle: int, trace_id: bytes, targets: set[int]) -> None:
        """Store which texts of other traces a bundle refers to."""
        self._traces[bundle] = trace_id
        for target in targets:
            home = frame_of(target)
            owner = self._traces.get(home)
            if owner is None:
                found: Any = self._db.execute("SELECT trace_id FROM bundle WHERE id = ?", (home,)).get
                owner = self._traces[home] = found
            if owner != trace_id:
                self._db.execute("INSERT OR IGNORE INTO text_link VALUES (?, ?)", (target, bundle))

    def _stored_text(self, digest: bytes) -> int | None:
        return stored_text(self._db, digest)

    def _store_text(self, digest: bytes, address: int) -> None:
        self._new_texts.append((digest, address))

    # Runs

    def _touch_run(
        self,
        trace_id: bytes,
        agent: str,
        started_ns: int,
        now_ns: int,
        stale: int = 0,
        talk: str = "",
    ) -> None:
        """Note that something of a run arrived, and insert the run if it is new.

        ``stale``: position of what outdates its summary; 0 if nothing does. ``talk``: its conversation.
        """
        if trace_id not in self._runs:
            found: Any = self._db.execute("SELECT 1 FROM run WHERE trace_id = ?", (trace_id,)).get
            self._runs.add(trace_id)
            if found is None:
                word = agent_word(agent)
                number: Any = self._db.execute(
                    "INSERT INTO agent VALUES (?, 1) ON CONFLICT DO UPDATE SET last = last + 1"
                    " RETURNING last",
                    (word,),
                ).get
                self._db.execute(
                    "INSERT INTO run(trace_id, name, agent, mode, origin, started_ns, arrived_ns,"
                    " conversation, stale, loose) VALUES (?, ?, ?, 'record', '', ?, ?, ?, ?, ?)",
                    (
                        trace_id,
                        f"{word}-{number}",
                        agent or word,
                        started_ns,
                        now_ns,
                        talk,
                        self.position,
                        stale > 0,
                    ),
                )
                return
        self._db.execute(
            "UPDATE run SET started_ns = min(started_ns, ?), arrived_ns = ?, stale = max(stale, ?),"
            " conversation = iif(conversation = '', ?, conversation), loose = loose + ?"
            " WHERE trace_id = ?",
            (started_ns, now_ns, stale, talk, stale > 0, trace_id),
        )

    def _join(self, trace_id: bytes, known: Instance) -> bool:
        """Add a process to a run; whether it is new to the run."""
        if (trace_id, known.row) in self._members:
            return False
        self._members.add((trace_id, known.row))
        self._db.execute("INSERT OR IGNORE INTO run_instance VALUES (?, ?)", (trace_id, known.row))
        return bool(self._db.changes())


T = TypeVar("T")


def batched(items: Sequence[T], size: int) -> Iterator[tuple[T, ...]]:
    """``items`` in portions of at most ``size``."""
    rest = iter(items)
    while some := tuple(islice(rest, size)):
        yield some
