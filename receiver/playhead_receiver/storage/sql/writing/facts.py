"""Rows of facts: frames, chains, what is found in them, and what they say of processes and runs."""

from __future__ import annotations

from bisect import bisect_right

from playhead_core.facts import Fact
from playhead_core.integrity import Link
from playhead_core.tape.span_starts import starts_of
from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.sql.tables.blob_uses import uses_of
from playhead_receiver.storage.sql.writing.draft import RowDraft
from playhead_receiver.storage.sql.writing.known_rows import KnownRows
from playhead_receiver.storage.sql.writing.runs import RunRows
from playhead_receiver.storage.writing.chain_linking import brought_link, links_for
from playhead_receiver.storage.writing.fact_rows import PROCESS_FACTS, fresh, part_digest, pending_row
from playhead_receiver.storage.writing.known_instances import Instance, agent_of, text_of
from playhead_receiver.storage.writing.prepare import FactRun
from playhead_semconv import attributes as a
from playhead_semconv import events as e


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
        strands = known.strands(facts)
        first: dict[bytes, Fact] = {}
        changed: set[bytes] = set()
        for fact in facts:
            self._place(known, fact)
            if fact.trace_id and fact.trace_id not in first:
                first[fact.trace_id] = fact
            if fact.name in PROCESS_FACTS:
                known.fold(fact)
                if fact.name == e.PLAYHEAD_PROCESS_START:
                    self._begin_run(fact)
                if fact.name != e.PLAYHEAD_PROCESS_HEARTBEAT:
                    changed.add(known.trace_id)
            elif fact.trace_id:
                for start in starts_of(fact):
                    draft.pending.setdefault((start.trace_id, start.span_id), pending_row(known, start))
                    changed.add(fact.trace_id)
        known.see(facts, draft.now_ns)
        draft.instances[known.row] = known
        for trace_id, fact in first.items():
            self._runs.touch(trace_id, agent_of(fact) or known.name(), fact.time_ns)
            if self._runs.join(trace_id, known):
                changed.add(trace_id)
        for trace_id in changed:
            if trace_id:
                draft.run(trace_id).stale = draft.position
        if strands:
            draft.strands += [(known.row, one, facts[0].seq, up) for one, up in strands.items()]
        if known.trace_id and known.begins_runs(facts):
            draft.run(known.trace_id).serves = True

    def _place(self, known: Instance, fact: Fact) -> None:
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
