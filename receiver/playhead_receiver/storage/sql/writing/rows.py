"""Turns prepared batches into rows, inside the writer's transaction, with joint look-ups and writes."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence

from playhead_core.facts import Fact
from playhead_core.integrity import Link
from playhead_core.reports import NAMES, words_in
from playhead_core.tape.span_starts import starts_of
from playhead_genai.run_fields import CONVERSATION
from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.content.packing import Frame, TextIndex
from playhead_receiver.storage.content.texts import frame_of
from playhead_receiver.storage.runs.naming import agent_word
from playhead_receiver.storage.sql.reading.summaries import span_row
from playhead_receiver.storage.sql.tables.blob_uses import uses_of
from playhead_receiver.storage.sql.writing.draft import LATEST_NS, RowDraft, SpanId, Tables
from playhead_receiver.storage.sql.writing.known_rows import KnownRows, KnownSpan
from playhead_receiver.storage.values.stored import Receipt
from playhead_receiver.storage.writing.chain_linking import brought_link, links_for
from playhead_receiver.storage.writing.fact_rows import PROCESS_FACTS, fresh, part_digest, pending_row
from playhead_receiver.storage.writing.known_instances import Instance, agent_of, text_of
from playhead_receiver.storage.writing.prepare import (
    Bundle,
    FactRun,
    Prepared,
    PreparedLog,
    PreparedSpan,
)
from playhead_receiver.storage.writing.recent_bundles import RecentBundle, RecentBundles, recent_bundle
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class RunRows:
    """Drafts the rows of runs in one transaction."""

    def __init__(self, known: KnownRows, draft: RowDraft) -> None:
        self._known = known
        self._draft = draft

    def touch(self, trace_id: bytes, agent: str, started_ns: int) -> None:
        """Note that something of a run arrived, and insert the run if it is new."""
        draft = self._draft
        if trace_id not in self._known.runs:
            self._known.runs.add(trace_id)
            named = self._name(agent), agent or agent_word(agent)
            draft.new_runs[trace_id] = (trace_id, *named, started_ns, draft.now_ns, draft.position)
        run = draft.run(trace_id)
        run.started_ns = min(run.started_ns, started_ns)

    def rename(self, trace_id: bytes, agent: str, started_ns: int) -> None:
        """Name a run after ``agent`` if the run began in its process, which joins the run now.

        Facts of a service may arrive before those of the service that called it.
        """
        draft = self._draft
        new = draft.new_runs.get(trace_id)
        before, began_ns = self._known.beginning(trace_id) if new is None else (new[2], new[3])
        began_ns = min(began_ns, draft.run(trace_id).started_ns)
        if not agent or agent == before or started_ns >= began_ns:
            return
        named = self._name(agent), agent
        if new is None:
            draft.renamed_runs[trace_id] = (trace_id, *named)
        else:
            draft.new_runs[trace_id] = (trace_id, *named, *new[3:])

    def _name(self, agent: str) -> str:
        word = agent_word(agent)
        number = self._draft.agents[word] = self._known.next_number(word)
        return f"{word}-{number}"

    def join(self, trace_id: bytes, known: Instance) -> bool:
        """Add a process to a run; whether it is new to the run."""
        members = self._known.members.setdefault(trace_id, set())
        if known.row in members:
            return False
        members.add(known.row)
        self._draft.members[trace_id, known.row] = None
        return True


class FactRows:
    """Drafts the rows of facts in one transaction."""

    def __init__(self, known: KnownRows, draft: RowDraft, runs: RunRows, blobs: Blobs) -> None:
        self._known = known
        self._draft = draft
        self._runs = runs
        self._blobs = blobs

    def set_resource(self, instance: bytes, resource: bytes) -> None:
        """Store the OTLP resource of an instance, unless it has one already."""
        known = self._known.instances[instance]
        if known.resource is None:
            known.resource = resource
            self._draft.instances[known.row] = known

    def add_link(self, link: Link) -> None:
        """Store an imported link of a chain, if it continues the chain."""
        row = brought_link(self._known.instances[link.instance], link)
        if row is not None:
            self._draft.links.append(row)

    def add(self, run: FactRun) -> int:
        """Store the facts of ``run`` that are not stored yet; return how many."""
        draft, known = self._draft, self._known.instances[run.instance]
        new = fresh(known, run, self._blobs)
        for part in new:
            draft.position += len(part.facts)
            draft.fact_runs.append(
                (draft.position, known.row, part.first, part.last, part.data, part.blobs)
            )
            draft.blob_uses += uses_of(draft.position, part.blobs)
            draft.links += links_for(known, part, draft.now_ns)
            self._extend_range(known, part.first, part.last)
            self._index(known, part.facts)
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

    def _index(self, known: Instance, facts: list[Fact]) -> None:
        draft = self._draft
        entries = known.entries(facts)
        first: dict[bytes, Fact] = {}
        changed: set[bytes] = set()
        for fact in facts:
            self._note_positions(known, fact)
            if fact.trace_id and fact.trace_id not in first:
                first[fact.trace_id] = fact
            if fact.name in PROCESS_FACTS:
                known.fold(fact)
                if fact.name == e.PLAYHEAD_PROCESS_START:
                    self._begin_run(fact)
                if fact.name != e.PLAYHEAD_PROCESS_HEARTBEAT:
                    changed.add(known.trace_id)
            elif fact.name in NAMES and fact.trace_id:
                draft.add_words(fact.trace_id, words_in(fact.name, fact.attributes), fact.time_ns)
                changed.add(fact.trace_id)
            elif fact.trace_id:
                for start in starts_of(fact):
                    draft.pending.setdefault((start.trace_id, start.span_id), pending_row(known, start))
                    changed.add(fact.trace_id)
        known.see(facts, draft.now_ns)
        draft.instances[known.row] = known
        for trace_id, fact in first.items():
            agent, is_new = agent_of(fact) or known.name(), trace_id not in self._known.runs
            if self._runs.join(trace_id, known):
                changed.add(trace_id)
                if not is_new:
                    self._runs.rename(trace_id, agent, fact.time_ns)
            self._runs.touch(trace_id, agent, fact.time_ns)
        for trace_id in changed:
            if trace_id:
                draft.run(trace_id).stale = draft.position
        if entries:
            draft.entries += [(known.row, one, facts[0].seq, up) for one, up in entries.items()]
        if known.trace_id and known.begins_runs(facts):
            draft.run(known.trace_id).serves = True

    def _note_positions(self, known: Instance, fact: Fact) -> None:
        """Note where an exchange, bytes, or a part of a blob is on the tape."""
        draft, seq = self._draft, fact.seq
        if fact.exchange is not None:
            exchange = known.row, str(fact.exchange)
            first, last = draft.exchanges.get(exchange, (seq, seq))
            draft.exchanges[exchange] = min(first, seq), max(last, seq)
        if fact.name == e.PLAYHEAD_BLOB:
            digest = part_digest(fact)
            if digest is not None:
                draft.blob_parts[known.row, digest, seq] = None
        elif fact.body is not None and fact.body.tells:
            draft.contents.setdefault((known.row, fact.body.digest), seq)

    def _begin_run(self, fact: Fact) -> None:
        """Take mode and origin of a run from the start of its process; a child process says neither."""
        if fact.trace_id and a.PLAYHEAD_PROCESS_PARENT_INSTANCE not in fact.attributes:
            run = self._draft.run(fact.trace_id)
            run.mode = text_of(fact, a.PLAYHEAD_RUN_MODE) or "record"
            run.origin = text_of(fact, a.PLAYHEAD_RUN_ORIGIN)


class SpanRows:
    """Drafts the rows of spans and log records in one transaction."""

    def __init__(
        self, known: KnownRows, draft: RowDraft, runs: RunRows, texts: TextIndex, is_searched: bool
    ) -> None:
        """``is_searched``: whether bundles are kept for the search index."""
        self._known = known
        self._draft = draft
        self._runs = runs
        self._texts = texts
        self._is_searched = is_searched

    def add(self, bundle: Bundle) -> tuple[int, int]:
        """Store those spans of a bundle that no stored one outlasts, and its log records.

        Returns how many spans and how many log records are new.
        """
        draft = self._draft
        number = draft.bundle + 1
        frame = Frame(self._texts, number)
        new = 0
        placed: dict[int, PreparedSpan] = {}
        for span in bundle.spans:
            while (other := self._known.with_distinct_id(span)) is not span:
                span = other
            id = bundle.trace_id, span.summary.span_id
            before = self._known.spans.get(id)
            if before is None:
                new += 1
            elif span.summary.end_ns <= before.end_ns:
                continue
            else:
                self._replace(id, before)
            self._insert(span, number, frame.next_place)
            placed[frame.next_place] = span
            frame.add(span.cut)
        logs = [self._add_log(bundle.trace_id, log, number, frame) for log in bundle.logs]
        places = [place for place in logs if place is not None]
        if not frame.next_place:
            return 0, 0
        draft.bundle = number
        draft.bundles.append((number, bundle.trace_id, frame.data()))
        if self._is_searched:
            recent = recent_bundle(frame.items, placed, places, frame.size_bytes)
            draft.recent.append((number, recent))
        self._link(number, bundle.trace_id, frame.refers_to)
        self._touch_run(bundle)
        return new, len(places)

    def _add_log(self, trace_id: bytes, log: PreparedLog, bundle: int, frame: Frame) -> int | None:
        """Store a log record and return its place; None if it is stored already."""
        identity = trace_id, log.time_ns, log.digest
        if identity in self._known.logs:
            return None
        self._known.logs.add(identity)
        resource = self._known.resource(log.resource)
        self._draft.use(resource, None, 1)
        about = log.span_id, log.level, log.is_content
        place = frame.next_place
        self._draft.logs.append((*identity, *about, resource, bundle, place))
        frame.add(log.cut)
        return place

    def _replace(self, id: SpanId, before: KnownSpan) -> None:
        if id not in self._draft.spans:
            self._draft.replaced.append(id)
        self._draft.use(before.resource, before.label, -1)

    def _insert(self, span: PreparedSpan, bundle: int, place: int) -> None:
        draft = self._draft
        resource, label = self._known.resource(span.resource), self._known.label(span.label)
        draft.use(resource, label, 1)
        draft.position += 1
        about = span.summary
        id = about.trace_id, about.span_id
        self._known.spans[id] = KnownSpan(
            about.end_ns, resource, label, about.start_ns, about.label.served
        )
        draft.spans[id] = span_row(draft.position, span, label, resource, bundle, place)
        if span.about.instance:
            draft.come.append(id)

    def _link(self, bundle: int, trace_id: bytes, texts: set[int]) -> None:
        """Store which texts of other traces a bundle refers to."""
        self._known.add_bundle(bundle, trace_id)
        owners = self._known.owners(texts)
        for address in texts:
            if owners.get(frame_of(address)) != trace_id:
                self._draft.text_links[address, bundle] = None

    def _touch_run(self, bundle: Bundle) -> None:
        agent = ""
        words: dict[tuple[str, str], None] = {}
        for span in bundle.spans:
            words |= dict.fromkeys((*span.summary.words, *span.about.words))
            if span.about.instance:
                known = self._known.instances[span.about.instance]
                self._runs.join(bundle.trace_id, known)
                agent = agent or known.name()
        for log in bundle.logs:
            words |= dict.fromkeys(log.words)
        is_new = bundle.trace_id not in self._known.runs
        started_ns = min((span.summary.start_ns for span in bundle.spans), default=LATEST_NS)
        if is_new and not bundle.spans:
            started_ns = min(log.time_ns or self._draft.now_ns for log in bundle.logs)
        self._runs.touch(bundle.trace_id, bundle.agent(agent), started_ns)
        run = self._draft.run(bundle.trace_id)
        if bundle.spans:
            run.stale = self._draft.position
        elif is_new:  # positions count spans and facts, of which there may be none yet
            run.stale = max(self._draft.position, 1)
        conversations = (word for kind, word in words if kind == CONVERSATION)
        run.conversation = run.conversation or next(conversations, "")
        self._draft.add_words(bundle.trace_id, words, started_ns)
        run.loose += 1


class RowWriter:
    """Writes rows, and remembers what the tables hold. Used by one thread.

    In a transaction call `begin`, then `write`; after its commit `committed`; after a rollback, when
    what is remembered may be wrong, `forget`.
    """

    def __init__(self, tables: Tables, blobs: Blobs, recent: RecentBundles) -> None:
        """``recent``: gets the bundles that were committed."""
        self._recent = recent
        self._written: list[tuple[int, RecentBundle]] = []
        self._tables = tables
        self._blobs = blobs
        self._known = KnownRows(tables)
        self._texts = TextIndex(self._known.stored_text, self._store_text, self._known.known_texts)
        self._draft = RowDraft(0, 0, 0)
        self._knows = False

    @property
    def position(self) -> int:
        """Position of the last change."""
        return self._draft.position

    def forget(self) -> None:
        """Forget everything. Reads nothing, as the disk may have failed."""
        self._knows = False
        self._known.forget_rows()
        self._forget_texts()

    def _forget_texts(self) -> None:
        self._known.forget_bundles()
        self._texts.clear()

    def begin(self) -> bool:
        """Begin with the current counters; return whether others may have written meanwhile."""
        begun, knew = self._tables.begin(), self._knows
        self._draft = RowDraft(begun.position, begun.bundle, time.time_ns())
        if begun.others_wrote:
            self._known.forget_rows()
        if begun.others_deleted:
            self._recent.clear()
            self._forget_texts()
        self._knows = True
        return begun.others_wrote or not knew

    def write(self, batches: Sequence[Prepared]) -> list[Receipt]:
        """Write batches. The caller holds the transaction, and has called `begin`."""
        draft = self._draft
        self._known.look_up(batches, draft)
        runs = RunRows(self._known, draft)
        facts = FactRows(self._known, draft, runs, self._blobs)
        spans = SpanRows(self._known, draft, runs, self._texts, self._recent.wanted)
        receipts: list[Receipt] = []
        for batch in batches:
            for instance, resource in batch.resources.items():
                facts.set_resource(instance, resource)
            for link in batch.links:
                facts.add_link(link)
            facts_new = sum(map(facts.add, batch.runs))
            new = [spans.add(bundle) for bundle in batch.bundles]
            spans_new, logs_new = (sum(counts) for counts in zip((0, 0), *new, strict=True))
            receipts.append(Receipt(spans_new, facts_new, draft.position, logs_new))
        self._tables.finish(draft.changes(), draft.position, draft.bundle)
        if draft.frees():
            self._known.forget_shared()
        self._draft, self._written = RowDraft(draft.position, draft.bundle, 0), draft.recent
        return receipts

    def committed(self) -> None:
        """Hand the written bundles to the search index. Call it after the commit of `write`."""
        for number, bundle in self._written:
            self._recent.add(number, bundle)
        self._written = []

    def _store_text(self, digest: bytes, address: int) -> None:
        self._draft.texts[digest] = address
