"""Writes prepared batches, inside the writer's transaction, with joint look-ups and joint writes.

A writer holds a lock on the row of `counter`, so only one receiver writes at a time. Its caches are
valid as long as no other receiver has written since.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from playhead_receiver.store.content.blobs import Blobs
from playhead_receiver.store.content.packing import Frame, TextIndex
from playhead_receiver.store.content.texts import frame_of
from playhead_receiver.store.postgres.connections.database import PgDb
from playhead_receiver.store.postgres.row_drafts import Draft, Row, TouchedRun
from playhead_receiver.store.runs.naming import agent_word
from playhead_receiver.store.runs.summary_fold import HEARTBEAT_NS
from playhead_receiver.store.sql.reading.summaries import span_row
from playhead_receiver.store.sql.tables.blob_uses import uses_of
from playhead_receiver.store.sql.tables.chain_links import promised
from playhead_receiver.store.sql.tables.kept_texts import stored_text
from playhead_receiver.store.values.stored import Receipt
from playhead_receiver.store.writing.chain_linking import brought_link, links_for
from playhead_receiver.store.writing.fact_rows import PROCESS_FACTS, fresh, part_digest, pending_row
from playhead_receiver.store.writing.known_instances import COLUMNS, Instance, agent_of, recall, text_of
from playhead_receiver.store.writing.prepare import Bundle, FactRun, Prepared, PreparedSpan, resource_key
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.facts import Fact, digest_of
from playhead_semconv.tape.span_starts import starts_of

REMEMBERED = 4096
"""How many instances, runs, resources and labels are cached between transactions."""


class Rows:
    """Writes rows, with caches of what the tables hold. Used by one thread.

    Call `begin`, then `write`; call `forget` after a rollback, when the caches may be wrong.
    """

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._instances: dict[bytes, Instance] = {}
        self._shared: dict[tuple[str, bytes], int] = {}
        self._runs: set[bytes] = set()
        self._members: dict[bytes, set[int]] = {}
        self._agents: dict[str, int] = {}
        self._ends: dict[tuple[bytes, bytes], tuple[int, int, int]] = {}
        self._texts = TextIndex(self._stored_text, self._store_text, self._kept_texts)
        self._traces: dict[int, bytes] = {}
        self._draft = Draft()
        self._db: Any = None
        self.position = 0
        self._bundle = 0
        self._writes: int = -1
        self._deletions: int = -1

    def forget(self) -> None:
        """Empty all caches."""
        self._forget_rows()
        self._texts.clear()
        self._traces.clear()
        self._writes = self._deletions = -1

    def _forget_rows(self) -> None:
        for kept in (self._instances, self._shared, self._runs, self._members, self._agents):
            kept.clear()

    def begin(self, db: PgDb) -> bool:
        """Lock the `counter` row; return whether another receiver has written since the last time."""
        self._db = db
        self._draft = Draft()
        counters: Any = db.execute(
            "SELECT position, bundle, writes, deletions FROM counter FOR UPDATE"
        ).get
        writes: int
        deletions: int
        self.position, self._bundle, writes, deletions = counters
        others = writes != self._writes
        if others:
            self._forget_rows()
        if deletions != self._deletions:
            self._texts.clear()
            self._traces.clear()
        self._writes, self._deletions = writes, deletions
        return others

    def write(self, batches: Sequence[Prepared]) -> list[Receipt]:
        """Write batches. The caller holds the transaction, and has called `begin`."""
        now_ns = time.time_ns()
        if max(map(len, (self._instances, self._shared, self._members))) > REMEMBERED:
            self._forget_rows()
        if len(self._traces) > REMEMBERED:
            self._traces.clear()
        self._look_up(batches)
        receipts: list[Receipt] = []
        for prepared in batches:
            for instance, resource in prepared.resources.items():
                known = self._instances[instance]
                if known.resource is None:
                    known.resource = resource
                    self._draft.instances[known.row] = known
            for link in prepared.links:
                row = brought_link(self._instances[link.instance], link)
                if row is not None:
                    self._draft.chain.append(row)
            facts_new = sum(self._write_facts(run, now_ns) for run in prepared.runs)
            spans_new = sum(self._write_bundle(bundle, now_ns) for bundle in prepared.bundles)
            receipts.append(Receipt(spans_new, facts_new, self.position))
        counters: Row = (self.position, self._bundle, self._writes + 1, self._deletions)
        self._draft.write(self._db.connection, counters)
        self._writes += 1
        if min(self._draft.uses.values(), default=1) <= 0:
            self._shared.clear()  # some rows may have been deleted
        return receipts

    # Look-ups

    def _look_up(self, batches: Sequence[Prepared]) -> None:
        spans = [span for batch in batches for bundle in batch.bundles for span in bundle.spans]
        instances = {run.instance for batch in batches for run in batch.runs}
        instances |= {instance for batch in batches for instance in batch.resources}
        instances |= {link.instance for batch in batches for link in batch.links}
        instances |= {span.about.instance for span in spans if span.about.instance}
        self._look_up_instances(instances - self._instances.keys())
        self._look_up_shared("resource", {resource_key(one.resource): one.resource for one in spans})
        self._look_up_shared("label", {digest_of(one.label)[:16]: one.label for one in spans})
        traces = {span.summary.trace_id for span in spans}
        traces |= {fact.trace_id for batch in batches for run in batch.runs for fact in run.facts}
        traces |= {self._instances[instance].trace_id for instance in instances}
        self._look_up_runs(traces - {b""} - self._members.keys())
        self._ends.clear()
        if spans:
            found = self._db.execute(
                "SELECT span.trace_id, span.span_id, end_ns, resource, label FROM span"
                " JOIN unnest(?::bytea[], ?::bytea[]) AS new(trace_id, span_id)"
                " ON span.trace_id = new.trace_id AND span.span_id = new.span_id",
                (
                    [span.summary.trace_id for span in spans],
                    [span.summary.span_id for span in spans],
                ),
            )
            for trace_id, span_id, end_ns, resource, label in found:
                self._ends[trace_id, span_id] = end_ns, resource, label

    def _look_up_instances(self, unknown: set[bytes]) -> None:
        if not unknown:
            return
        wanted = sorted(unknown)
        sql = f"SELECT {COLUMNS}, instance FROM instance WHERE instance = ANY(?)"
        for *row, instance in self._db.execute(sql, (wanted,)):
            self._instances[instance] = recall(row)
        fresh = [instance for instance in wanted if instance not in self._instances]
        if fresh:
            made = self._db.execute(
                "INSERT INTO instance(instance, trace_id, span_id, agent, started_ns, seen_ns,"
                " heartbeat_ns, exited, failed, last_seq)"
                " SELECT unnest(?::bytea[]), ''::bytea, ''::bytea, '', 0, 0, ?, false, false, -1"
                " RETURNING id, instance",
                (fresh, HEARTBEAT_NS),
            )
            for row, instance in made:
                self._instances[instance] = Instance(row, None)
        by_row = {self._instances[instance].row: self._instances[instance] for instance in wanted}
        for (row,) in self._db.execute(
            "SELECT DISTINCT instance FROM strand WHERE instance = ANY(?)", (list(by_row),)
        ):
            by_row[row].serves = True
        for row, first, last in self._db.execute(
            "SELECT instance, first, last FROM fact_range WHERE instance = ANY(?) ORDER BY first",
            (list(by_row),),
        ):
            by_row[row].firsts.append(first)
            by_row[row].lasts.append(last)
        for row, number, link in self._db.execute(
            "SELECT DISTINCT ON (instance) instance, number, link FROM link"
            " WHERE instance = ANY(?) ORDER BY instance, number DESC",
            (list(by_row),),
        ):
            by_row[row].links, by_row[row].tip = number + 1, link
        brought = self._db.execute(
            "SELECT instance FROM link WHERE number = 0 AND brought AND instance = ANY(?)",
            (list(by_row),),
        )
        for (row,) in list(brought):
            by_row[row].promised = promised(self._db, row)

    def _look_up_shared(self, table: str, values: dict[bytes, bytes]) -> None:
        unknown = {key: data for key, data in values.items() if (table, key) not in self._shared}
        if not unknown:
            return
        self._db.execute(
            f"INSERT INTO {table}(key, data, uses)"
            " SELECT *, 0 FROM unnest(?::bytea[], ?::bytea[]) ON CONFLICT DO NOTHING",
            (list(unknown), list(unknown.values())),
        )
        sql = f"SELECT id, key FROM {table} WHERE key = ANY(?)"
        for row, key in self._db.execute(sql, (list(unknown),)):
            self._shared[table, key] = row
            self._use(table, row, 0)

    def _look_up_runs(self, unknown: set[bytes]) -> None:
        if not unknown:
            return
        wanted = sorted(unknown)
        rows = self._db.execute("SELECT trace_id FROM run WHERE trace_id = ANY(?)", (wanted,))
        self._runs |= {row[0] for row in rows}
        self._members.update((trace_id, set()) for trace_id in wanted)
        for trace_id, row in self._db.execute(
            "SELECT trace_id, instance FROM run_instance WHERE trace_id = ANY(?)", (wanted,)
        ):
            self._members[trace_id].add(row)

    # Facts

    def _write_facts(self, run: FactRun, now_ns: int) -> int:
        known = self._instances[run.instance]
        new = fresh(known, run, self._blobs)
        for part in new:
            self.position += len(part.facts)
            self._draft.fact_runs.append(
                (self.position, known.row, part.first, part.last, part.data, part.blobs)
            )
            self._draft.blob_uses += uses_of(self.position, part.blobs)
            self._draft.chain += links_for(known, part, now_ns)
            self._extend_range(known, part.first, part.last)
            self._index(known, part.facts, now_ns)
        return sum(len(part.facts) for part in new)

    def _extend_range(self, known: Instance, first: int, last: int) -> None:
        """Add a new range of numbers, joined with adjacent ranges."""
        place = bisect_right(known.firsts, first)
        if place < len(known.firsts) and known.firsts[place] == last + 1:
            last = known.lasts[place]
            self._draft.ranges[known.row, known.firsts[place]] = None
            del known.firsts[place], known.lasts[place]
        if place > 0 and known.lasts[place - 1] == first - 1:
            place -= 1
            known.lasts[place] = last
        else:
            known.firsts.insert(place, first)
            known.lasts.insert(place, last)
        self._draft.ranges[known.row, known.firsts[place]] = last

    def _index(self, known: Instance, facts: list[Fact], now_ns: int) -> None:
        draft = self._draft
        traces: dict[bytes, Fact] = {}
        changed: set[bytes] = set()
        strands = known.strands(facts)
        for fact in facts:
            if fact.exchange is not None:
                key = known.row, str(fact.exchange)
                first, last = draft.exchanges.get(key, (fact.seq, fact.seq))
                draft.exchanges[key] = min(first, fact.seq), max(last, fact.seq)
            if fact.trace_id and fact.trace_id not in traces:
                traces[fact.trace_id] = fact
            if fact.name == e.PLAYHEAD_BLOB:
                digest = part_digest(fact)
                if digest is not None:
                    draft.parts[known.row, digest, fact.seq] = None
            elif fact.body is not None and fact.body.tells:
                draft.contents.setdefault((known.row, fact.body.digest), fact.seq)
            if fact.name in PROCESS_FACTS:
                known.fold(fact)
                if fact.name != e.PLAYHEAD_PROCESS_HEARTBEAT:
                    changed.add(known.trace_id)
            elif fact.trace_id:
                for start in starts_of(fact):
                    draft.pending.setdefault((start.trace_id, start.span_id), pending_row(known, start))
                    changed.add(fact.trace_id)
        latest = min(max(fact.time_ns for fact in facts), now_ns)
        known.seen_ns = max(known.seen_ns, latest)
        if not known.started_ns:
            known.started_ns = facts[0].time_ns
        draft.instances[known.row] = known
        for trace_id, first_fact in traces.items():
            agent = agent_of(first_fact) or known.name()
            self._touch_run(trace_id, agent, first_fact.time_ns, now_ns)
            if self._join(trace_id, known):
                changed.add(trace_id)
        for trace_id in changed:
            self._change_run(trace_id, now_ns).stale = self.position
        for fact in facts:
            # The start of a child process says nothing about the run.
            child = a.PLAYHEAD_PROCESS_PARENT_INSTANCE in fact.attributes
            if fact.name == e.PLAYHEAD_PROCESS_START and fact.trace_id and not child:
                run = self._change_run(fact.trace_id, now_ns)
                run.mode = text_of(fact, a.PLAYHEAD_RUN_MODE) or "record"
                run.origin = text_of(fact, a.PLAYHEAD_RUN_ORIGIN)
        if strands:
            draft.strands += [(known.row, one, facts[0].seq, up) for one, up in strands.items()]
        if known.trace_id and known.begins_runs(facts):
            self._change_run(known.trace_id, now_ns).serves = True

    # Spans

    def _write_bundle(self, bundle: Bundle, now_ns: int) -> int:
        number = self._bundle + 1
        frame = Frame(self._texts, number)
        new = 0
        for span in bundle.spans:
            id = bundle.trace_id, span.summary.span_id
            before = self._ends.get(id)
            if before is None:
                new += 1
            elif span.summary.end_ns <= before[0]:
                continue
            else:
                self._replace(id, before)
            self._insert_span(span, number, frame.next_place)
            frame.add_span(span.cut)
        if not frame.next_place:
            return 0
        self._bundle = number
        self._draft.bundles.append((number, bundle.trace_id, frame.data()))
        self._link(number, bundle.trace_id, frame.refers_to)
        agent = talk = ""
        for span in bundle.spans:
            talk = talk or span.summary.conversation
            if span.about.instance:
                known = self._instances[span.about.instance]
                self._join(bundle.trace_id, known)
                agent = agent or known.name()
        started_ns = min(span.summary.start_ns for span in bundle.spans)
        self._touch_run(bundle.trace_id, bundle.agent(agent), started_ns, now_ns)
        run = self._change_run(bundle.trace_id, now_ns)
        run.stale = self.position
        run.conversation = run.conversation or talk
        run.loose += 1
        return new

    def _insert_span(self, span: PreparedSpan, bundle: int, place: int) -> None:
        resource = self._shared["resource", resource_key(span.resource)]
        label = self._shared["label", digest_of(span.label)[:16]]
        self._use("resource", resource, 1)
        self._use("label", label, 1)
        self.position += 1
        id = span.summary.trace_id, span.summary.span_id
        self._ends[id] = span.summary.end_ns, resource, label
        self._draft.spans[id] = span_row(self.position, span, label, resource, bundle, place)
        if span.about.instance:
            self._draft.come.append(id)

    def _replace(self, id: tuple[bytes, bytes], before: tuple[int, int, int]) -> None:
        if id not in self._draft.spans:
            self._draft.replaced.append(id)
        self._use("resource", before[1], -1)
        self._use("label", before[2], -1)

    def _use(self, table: str, row: int, count: int) -> None:
        uses = self._draft.uses
        uses[table, row] = uses.get((table, row), 0) + count

    # Texts

    def _link(self, bundle: int, trace_id: bytes, targets: set[int]) -> None:
        """Store which texts of other traces a bundle refers to."""
        self._traces[bundle] = trace_id
        homes = {frame_of(target) for target in targets} - self._traces.keys()
        if homes:
            found = self._db.execute("SELECT id, trace_id FROM bundle WHERE id = ANY(?)", (list(homes),))
            self._traces.update(found)
        for target in targets:
            if self._traces.get(frame_of(target)) != trace_id:
                self._draft.links[target, bundle] = None

    def _kept_texts(self, digests: list[bytes]) -> set[bytes]:
        rows = self._db.execute("SELECT digest FROM text WHERE digest = ANY(?)", (digests,))
        return {row[0] for row in rows}

    def _stored_text(self, digest: bytes) -> int | None:
        return stored_text(self._db, digest)

    def _store_text(self, digest: bytes, address: int) -> None:
        self._draft.texts[digest] = address

    # Runs

    def _touch_run(self, trace_id: bytes, agent: str, started_ns: int, now_ns: int) -> None:
        """Note that something of a run arrived, and insert the run if it is new."""
        if trace_id not in self._runs:
            self._runs.add(trace_id)
            word = agent_word(agent)
            name = f"{word}-{self._next_number(word)}"
            row = trace_id, name, agent or word, started_ns, now_ns, self.position
            self._draft.new_runs[trace_id] = row
        run = self._change_run(trace_id, now_ns)
        run.started_ns = min(run.started_ns, started_ns)

    def _change_run(self, trace_id: bytes, now_ns: int) -> TouchedRun:
        run = self._draft.runs.get(trace_id)
        if run is None:
            run = self._draft.runs[trace_id] = TouchedRun(_LATEST_NS, now_ns)
        return run

    def _next_number(self, word: str) -> int:
        last = self._agents.get(word)
        if last is None:
            last = self._db.execute("SELECT last FROM agent WHERE word = ?", (word,)).get or 0
        self._agents[word] = self._draft.agents[word] = last + 1
        return last + 1

    def _join(self, trace_id: bytes, known: Instance) -> bool:
        """Add a process to a run; whether it is new to the run."""
        members = self._members.setdefault(trace_id, set())
        if known.row in members:
            return False
        members.add(known.row)
        self._draft.members[trace_id, known.row] = None
        return True


_LATEST_NS = (1 << 63) - 1
