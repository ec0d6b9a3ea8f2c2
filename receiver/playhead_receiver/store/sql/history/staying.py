"""Which facts of a service's own run stay, whatever their age."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from playhead_receiver.store.runs.strands import lane_strand, needs_of
from playhead_receiver.store.sql.history.measured import Process
from playhead_receiver.store.sql.reading.part_of_tape import AT_ONCE, Strands
from playhead_receiver.store.sql.reading.reader import Reader
from playhead_receiver.store.writing.fact_rows import part_digest
from playhead_receiver.store.writing.prepare import bare_run, offloaded_at
from playhead_semconv import events as e
from playhead_semconv.errors import CorruptTape
from playhead_semconv.facts import Fact
from playhead_semconv.tape.slices import has_news, parent_of
from playhead_semconv.tape.span_starts import starts_among, starts_of

_OF_ITS_PROCESS = (e.PLAYHEAD_PROCESS_START, e.PLAYHEAD_PROCESS_EXIT, e.PLAYHEAD_GAP)


@dataclass(slots=True)
class Stretch:
    """A frame of facts, as it lies in the table."""

    position: int
    first: int
    last: int
    data: bytes
    blobs: bytes | None
    facts: list[Fact]
    """What is in it; bodies that lie in the blobs have no bytes."""
    stays: set[int] = field(default_factory=set[int])
    """Numbers of the facts that do not age out now."""
    waits: bool = False
    """Whether one of these may later."""

    @property
    def kept(self) -> list[Fact]:
        """What stays of it."""
        return [fact for fact in self.facts if fact.seq in self.stays]

    @property
    def aged(self) -> list[Fact]:
        """What goes."""
        return [fact for fact in self.facts if fact.seq not in self.stays]


def stretch_of(row: Sequence[Any]) -> Stretch | None:
    """Of position, first, last, data and blobs; None where they cannot be read: `verify` says so."""
    position, first, last, data, blobs = row
    try:
        facts, elsewhere = bare_run(data), offloaded_at(blobs)
    except CorruptTape:
        return None
    for place, fact in enumerate(facts):
        if fact.seq in elsewhere and fact.body is not None:  # its bytes are here, though not at hand
            body = msgspec.structs.replace(fact.body, inline=b"")
            facts[place] = msgspec.structs.replace(fact, body=body)
    return Stretch(position, first, last, data, blobs, facts)


class Owners:
    """Tells the facts of requests from those of their process."""

    def __init__(self, reader: Reader, process: Process, facts: Iterable[Fact]) -> None:
        """``facts``: those that will be asked for."""
        strands = Strands(reader, process.row)
        at_hand = list(facts)
        self._process = process
        self._above = strands.traces_of({fact.lane for fact in at_hand})
        traces = {fact.trace_id for fact in at_hand if any(fact.trace_id)}
        self._runs = runs_of(reader, traces.union(*self._above.values()))

    def is_own(self, fact: Fact) -> bool:
        """Whether a fact belongs to no request of which there is a run, and not to the boot."""
        if fact.seq <= self._process.boot_end:
            return False
        if self._above[fact.lane] & self._runs:
            return False
        return fact.trace_id == self._process.trace_id or fact.trace_id not in self._runs


def runs_of(reader: Reader, traces: set[bytes]) -> set[bytes]:
    """Those of ``traces`` of which there is a run."""
    found: set[bytes] = set()
    wanted = sorted(traces)
    for at in range(0, len(wanted), AT_ONCE):
        some = wanted[at : at + AT_ONCE]
        marks = ", ".join("?" * len(some))
        rows = reader.all(f"SELECT trace_id FROM run WHERE trace_id IN ({marks})", some)
        found.update(row[0] for row in rows)
    return found


def decide(reader: Reader, process: Process, stretches: Sequence[Stretch]) -> None:
    """Say in each of ``stretches``, the newest first, which facts stay.

    A fact of the process stays where something that is kept needs it: bytes that a body goes on from,
    the name of a lane, the start of a span that has not come. Content that a process tells once and
    points to ever after (files, states) stays.
    """
    facts = [fact for stretch in stretches for fact in stretch.facts]
    owners = Owners(reader, process, facts)
    own = [fact for fact in facts if owners.is_own(fact)]
    strands = Strands(reader, process.row)
    asked_for = {lane_strand(fact.lane) for fact in own if fact.name == e.PLAYHEAD_LANE}
    asked_for |= {digest for fact in own if (digest := _told(fact))}
    needed = strands.said_in(asked_for, [stretch.first for stretch in stretches])
    tellers = _tellers(reader, process, own)
    pending = _pending(reader, own)
    asked = {fact.body.digest for fact in own if _is_request(fact) and fact.body is not None}

    def stays_for_good(fact: Fact) -> bool:
        if fact.name in _OF_ITS_PROCESS or has_news(fact):
            return True
        if fact.name == e.PLAYHEAD_BLOB:
            digest = _told(fact)
            return digest not in asked and not process.was_asked(digest)
        tells = fact.body is not None and fact.body.tells and not _is_request(fact)
        return tells and tellers.get(_told(fact)) == fact.seq

    def stays_for_now(fact: Fact) -> bool:
        if any((start.trace_id, start.span_id) in pending for start in starts_of(fact)):
            return True
        if fact.name == e.PLAYHEAD_LANE:
            return lane_strand(fact.lane) in needed
        digest = _told(fact)
        if not digest or (fact.name != e.PLAYHEAD_BLOB and tellers.get(digest) != fact.seq):
            return False
        return digest in needed or process.may_be_gone_on_from(digest)

    numbers = {fact.seq for fact in own}
    for stretch in stretches:
        stretch.stays = {fact.seq for fact in stretch.facts if fact.seq not in numbers}
        for fact in stretch.facts:
            if fact.seq in stretch.stays or stays_for_good(fact):
                stretch.stays.add(fact.seq)
                needed |= _needs(fact)
        grows = True
        while grows:
            grows = False
            for fact in reversed(stretch.facts):
                if fact.seq not in stretch.stays and stays_for_now(fact):
                    stretch.stays.add(fact.seq)
                    needed |= _needs(fact)
                    stretch.waits = grows = True
    process.note_asked(asked)


def _needs(fact: Fact) -> set[bytes]:
    """Strands that a fact needs: contents, and lanes that say what its lane is called."""
    lanes = {lane_strand(fact.lane)}
    if fact.name == e.PLAYHEAD_LANE:
        parent = parent_of(fact)
        return {lane_strand(parent)} if parent >= 0 else set[bytes]()
    return needs_of(fact.body) | lanes


def _is_request(fact: Fact) -> bool:
    return fact.name == e.PLAYHEAD_EXCHANGE_REQUEST


def _told(fact: Fact) -> bytes:
    """The content of which a fact tells the bytes; empty where it tells none."""
    if fact.name == e.PLAYHEAD_BLOB:
        return part_digest(fact) or b""
    return fact.body.digest if fact.body is not None and fact.body.tells else b""


def _tellers(reader: Reader, process: Process, facts: Sequence[Fact]) -> dict[bytes, int]:
    """Which fact is read for a content, for those that ``facts`` tell."""
    wanted = sorted({digest for fact in facts if (digest := _told(fact))})
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


def _pending(reader: Reader, facts: Sequence[Fact]) -> set[tuple[bytes, bytes]]:
    """Spans that ``facts`` start and that have not come."""
    starts = list(starts_among(facts))
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
