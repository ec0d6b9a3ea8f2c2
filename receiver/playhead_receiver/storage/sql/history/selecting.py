"""Decides which facts of a service's own run stay, whatever their age."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from playhead_core.errors import CorruptTape
from playhead_core.facts import Fact
from playhead_core.tape.slices import has_news, parent_of
from playhead_core.tape.span_starts import starts_among, starts_of
from playhead_receiver.storage.runs.request_index import lane_key, needs_of
from playhead_receiver.storage.sql.history.measuring import Process
from playhead_receiver.storage.sql.reading.part_of_tape import AT_ONCE, RequestIndex
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.writing.fact_rows import part_digest
from playhead_receiver.storage.writing.prepare import bare_run, offloaded_at
from playhead_semconv import events as e

_OF_ITS_PROCESS = (e.PLAYHEAD_PROCESS_START, e.PLAYHEAD_PROCESS_EXIT, e.PLAYHEAD_GAP)


@dataclass(slots=True)
class FactFrame:
    """A frame of facts, as stored in the table."""

    position: int
    first: int
    last: int
    data: bytes
    blobs: bytes | None
    facts: list[Fact]
    """Its facts; bodies that lie in blobs are empty."""
    stays: set[int] = field(default_factory=set[int])
    """Numbers of the facts that do not age out now."""
    waits: bool = False
    """Whether one of the facts that stay may age out later."""

    @property
    def kept(self) -> list[Fact]:
        """The facts that stay."""
        return [fact for fact in self.facts if fact.seq in self.stays]

    @property
    def aged(self) -> list[Fact]:
        """The facts that age out."""
        return [fact for fact in self.facts if fact.seq not in self.stays]


def read_frame(row: Sequence[Any]) -> FactFrame | None:
    """Decode a row of position, first, last, data, blobs; None if it is damaged: `verify` reports it."""
    position, first, last, data, blobs = row
    try:
        facts, elsewhere = bare_run(data), offloaded_at(blobs)
    except CorruptTape:
        return None
    for place, fact in enumerate(facts):
        if fact.seq in elsewhere and fact.body is not None:  # its bytes are stored, but not loaded
            body = msgspec.structs.replace(fact.body, inline=b"")
            facts[place] = msgspec.structs.replace(fact, body=body)
    return FactFrame(position, first, last, data, blobs, facts)


class Owners:
    """Distinguishes facts of requests from facts of the process itself."""

    def __init__(self, reader: SqlReader, process: Process, facts: Iterable[Fact]) -> None:
        """``facts``: those that `is_own` will be called for."""
        entries = RequestIndex(reader, process.row)
        at_hand = list(facts)
        self._process = process
        self._above = entries.traces_of({fact.lane for fact in at_hand})
        traces = {fact.trace_id for fact in at_hand if any(fact.trace_id)}
        self._runs = runs_of(reader, traces.union(*self._above.values()))

    def is_own(self, fact: Fact) -> bool:
        """Whether a fact belongs neither to a request that has a run, nor to the boot of the process."""
        if fact.seq <= self._process.boot_end:
            return False
        if self._above[fact.lane] & self._runs:
            return False
        return fact.trace_id == self._process.trace_id or fact.trace_id not in self._runs


def runs_of(reader: SqlReader, traces: set[bytes]) -> set[bytes]:
    """Those of ``traces`` that have a run."""
    found: set[bytes] = set()
    wanted = sorted(traces)
    for at in range(0, len(wanted), AT_ONCE):
        some = wanted[at : at + AT_ONCE]
        marks = ", ".join("?" * len(some))
        rows = reader.all(f"SELECT trace_id FROM run WHERE trace_id IN ({marks})", some)
        found.update(row[0] for row in rows)
    return found


def decide(reader: SqlReader, process: Process, frames: Sequence[FactFrame]) -> None:
    """Set in each of ``frames``, the newest first, which facts stay.

    A fact of the process stays if something that is kept needs it: bytes that a body extends, the name
    of a lane, the start of a span that has not arrived. Content that a process records once and refers
    to ever after (files, states) stays.
    """
    facts = [fact for frame in frames for fact in frame.facts]
    owners = Owners(reader, process, facts)
    own = [fact for fact in facts if owners.is_own(fact)]
    entries = RequestIndex(reader, process.row)
    wanted_keys = {lane_key(fact.lane) for fact in own if fact.name == e.PLAYHEAD_LANE}
    wanted_keys |= {digest for fact in own if (digest := _carried(fact))}
    needed = entries.keys_elsewhere(wanted_keys, [frame.first for frame in frames])
    carriers = _carriers(reader, process, own)
    pending = _pending(reader, own)
    asked = {fact.body.digest for fact in own if _is_request(fact) and fact.body is not None}

    def stays_for_good(fact: Fact) -> bool:
        if fact.name in _OF_ITS_PROCESS or has_news(fact):
            return True
        if fact.name == e.PLAYHEAD_BLOB:
            digest = _carried(fact)
            return digest not in asked and not process.was_requested(digest)
        tells = fact.body is not None and fact.body.tells and not _is_request(fact)
        return tells and carriers.get(_carried(fact)) == fact.seq

    def stays_for_now(fact: Fact) -> bool:
        if any((start.trace_id, start.span_id) in pending for start in starts_of(fact)):
            return True
        if fact.name == e.PLAYHEAD_LANE:
            return lane_key(fact.lane) in needed
        digest = _carried(fact)
        if not digest or (fact.name != e.PLAYHEAD_BLOB and carriers.get(digest) != fact.seq):
            return False
        return digest in needed or process.may_be_extended(digest)

    numbers = {fact.seq for fact in own}
    for frame in frames:
        frame.stays = {fact.seq for fact in frame.facts if fact.seq not in numbers}
        for fact in frame.facts:
            if fact.seq in frame.stays or stays_for_good(fact):
                frame.stays.add(fact.seq)
                needed |= _needs(fact)
        grows = True
        while grows:
            grows = False
            for fact in reversed(frame.facts):
                if fact.seq not in frame.stays and stays_for_now(fact):
                    frame.stays.add(fact.seq)
                    needed |= _needs(fact)
                    frame.waits = grows = True
    process.note_requested(asked)


def _needs(fact: Fact) -> set[bytes]:
    """Keys of what a fact needs: contents, and the declaration of its lane."""
    lanes = {lane_key(fact.lane)}
    if fact.name == e.PLAYHEAD_LANE:
        parent = parent_of(fact)
        return {lane_key(parent)} if parent >= 0 else set[bytes]()
    return needs_of(fact.body) | lanes


def _is_request(fact: Fact) -> bool:
    return fact.name == e.PLAYHEAD_EXCHANGE_REQUEST


def _carried(fact: Fact) -> bytes:
    """Digest of the content whose bytes a fact carries; empty if it carries none."""
    if fact.name == e.PLAYHEAD_BLOB:
        return part_digest(fact) or b""
    return fact.body.digest if fact.body is not None and fact.body.tells else b""


def _carriers(reader: SqlReader, process: Process, facts: Sequence[Fact]) -> dict[bytes, int]:
    """For each content that ``facts`` carry, the number of the fact from which it is read."""
    wanted = sorted({digest for fact in facts if (digest := _carried(fact))})
    found: dict[bytes, int] = {}
    for at in range(0, len(wanted), AT_ONCE):
        some = wanted[at : at + AT_ONCE]
        marks = ", ".join("?" * len(some))
        rows = reader.all(
            f"SELECT digest, seq FROM content WHERE instance = ? AND digest IN ({marks})",
            (process.row, *some),
        )
        found.update((digest, seq) for digest, seq in rows)
    return found


def _pending(reader: SqlReader, facts: Sequence[Fact]) -> set[tuple[bytes, bytes]]:
    """Trace and span ids of spans that ``facts`` start and that have not arrived."""
    starts = starts_among(facts)
    found: set[tuple[bytes, bytes]] = set()
    for at in range(0, len(starts), AT_ONCE):
        some = starts[at : at + AT_ONCE]
        spans, traces = ({fact.span_id for fact in some}, {fact.trace_id for fact in some})
        rows = reader.all(
            "SELECT trace_id, span_id FROM pending"
            f" WHERE trace_id IN ({', '.join('?' * len(traces))})"
            f" AND span_id IN ({', '.join('?' * len(spans))})",
            (*traces, *spans),
        )
        found.update((trace_id, span_id) for trace_id, span_id in rows)
    return found
