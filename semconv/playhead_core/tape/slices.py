"""A tape of one run, cut out of the tape of a process that served many runs.

A request that comes to a process begins a lane root. The run of a request needs what its process did
before the first request came (the *boot*), and what happened in lanes below the roots of the requests
that belong to the run. What remains of a process without those lanes is its own run.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from playhead_core.facts import Content, Fact, digest_of
from playhead_core.tape.folds import is_inbound
from playhead_core.tape.indexed_tapes import IndexedTape, MemoryTape
from playhead_core.tape.protocols import Tape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

T = TypeVar("T", bound=Tape)

AGED_OUT = "aged out"
"""Reason of a gap that is not a loss: a service does not keep its work outside of requests forever."""

_NEWS = (a.PLAYHEAD_RUN_MODULES, a.PLAYHEAD_RUN_IMPORTED)
"""What a heartbeat or an exit fact reports about a program, whatever the program does."""


class PartialTape(IndexedTape):
    """Some facts of a tape under their own numbers. Facts that are not included do not count as lost."""

    def __init__(self, tape: Tape, facts: Sequence[Fact], gaps: Sequence[tuple[int, int]]) -> None:
        """``gaps``: gaps of the complete tape."""
        super().__init__(facts, tape.instance)
        self._tape = tape
        self._gaps = gaps

    def gaps(self) -> list[tuple[int, int]]:
        """Return the missing ranges of sequence numbers, first and last included."""
        return list(self._gaps)

    def read(self, content: Content) -> bytes:
        """Return the bytes of a content, wherever they are on the complete tape."""
        return self._tape.read(content)


class SlicedTape(IndexedTape):
    """Some facts of a tape, renumbered. Lost facts among them leave a hole; bytes come from the tape."""

    def __init__(self, tape: Tape, facts: Sequence[Fact], origins: Sequence[int] = ()) -> None:
        """``origins``: number of each of ``facts`` on ``tape``; -1 if it is not there."""
        super().__init__(facts, tape.instance)
        self._tape = tape
        self.origins = array("q", origins)

    def read(self, content: Content) -> bytes:
        """Return the bytes of a content, wherever they are on the complete tape."""
        return self._tape.read(content)


def part_of(instance: bytes, trace_id: bytes) -> bytes:
    """Return the id for the part of a process instance that belongs to the run of one trace."""
    return digest_of(instance + trace_id)[: len(instance)]


def without_parts(instances: Sequence[bytes], trace_id: bytes) -> list[bytes]:
    """Return ``instances`` without those that are parts of others, as for a run read from a file."""
    parts = {part_of(one, trace_id) for one in instances}
    return [one for one in instances if one not in parts]


def slice_of(tape: T, trace_id: bytes) -> T | SlicedTape:
    """Return the part of ``tape`` that belongs to the run of a trace; ``tape`` itself without requests.

    For a tape with requests, a part of its facts is enough as input: what precedes the first request,
    that request, the lanes below those of the trace, and facts that satisfy `has_news`.
    """
    facts = list(tape.facts())
    asked = [fact for fact in facts if is_inbound(fact)]
    if not asked:
        return tape
    roots = roots_of(facts)
    wanted = {fact.lane for fact in asked if fact.trace_id == trace_id}
    boot_end = asked[0].seq
    if not wanted:
        own = [one for one in facts if one.lane not in roots]
        aged = tape.aged() if isinstance(tape, IndexedTape) else []
        return SlicedTape(tape, *_numbered(tape, own, [], aged))
    own: list[Fact] = []
    for fact in facts:
        root = roots.get(fact.lane)
        if root in wanted or (root is None and fact.trace_id == trace_id and any(trace_id)):
            own.append(fact)
        elif root is None and (fact.seq < boot_end or has_news(fact)):
            own.append(_of_process(fact))
    first = min(fact.seq for fact in asked if fact.lane in wanted)
    ended = {fact.lane for fact in own if fact.name == e.PLAYHEAD_EXCHANGE_END and fact.lane in wanted}
    spared = [(boot_end, first)]
    if ended == wanted:
        spared.append((max(one.seq for one in own if roots.get(one.lane) in wanted), sys.maxsize))
    return SlicedTape(tape, *_numbered(tape, own, spared))


def roots_of(facts: Sequence[Fact]) -> dict[int, int]:
    """Map each lane to the lane root of the request above it; lanes of the process itself are absent."""
    roots = {fact.lane: fact.lane for fact in facts if is_inbound(fact)}
    if roots:
        for fact in facts:
            if fact.name == e.PLAYHEAD_LANE and fact.lane not in roots:
                root = roots.get(parent_of(fact))
                if root is not None:
                    roots[fact.lane] = root
    return roots


def parent_of(lane: Fact) -> int:
    """Return the parent of the lane that a fact declares; -1 if there is none."""
    try:
        return int(str(lane.attributes.get(a.PLAYHEAD_LANE_PARENT)), 16)
    except ValueError:
        return -1


def lanes_of(facts: Iterable[Fact], traces: Collection[bytes]) -> set[int]:
    """Return the lanes that requests of these traces began, and those below them; ``facts`` in order."""
    lanes: set[int] = set()
    for fact in facts:
        if is_inbound(fact):
            (lanes.add if fact.trace_id in traces else lanes.discard)(fact.lane)
        elif fact.name == e.PLAYHEAD_LANE:
            if parent_of(fact) in lanes:
                lanes.add(fact.lane)
    return lanes


def served(tape: IndexedTape) -> IndexedTape:
    """Return the facts of ``tape`` that were recorded for requests, under their own numbers."""
    facts = list(tape.facts())
    roots = roots_of(facts)
    return SlicedTape(tape, [fact for fact in facts if fact.lane in roots])


def has_news(fact: Fact) -> bool:
    """Whether the fact reports something about a process that each of its runs needs."""
    ends = (e.PLAYHEAD_PROCESS_HEARTBEAT, e.PLAYHEAD_PROCESS_EXIT)
    return fact.name in ends and any(name in fact.attributes for name in _NEWS)


def _of_process(fact: Fact) -> Fact:
    """Return a fact of the process as it appears in the run of a request."""
    at: Mapping[str, Any] = fact.attributes
    if fact.name == e.PLAYHEAD_PROCESS_START:
        # A process that serves holds nothing back, whatever level was set.
        level = at.get(a.PLAYHEAD_RUN_LEVEL)
        if level == "strict":
            return msgspec.structs.replace(fact, attributes={**at, a.PLAYHEAD_RUN_LEVEL: "causal"})
        return fact
    if fact.name in (e.PLAYHEAD_PROCESS_HEARTBEAT, e.PLAYHEAD_PROCESS_EXIT):
        kept = {name: at[name] for name in _NEWS if name in at}
        return msgspec.structs.replace(fact, name=e.PLAYHEAD_PROCESS_HEARTBEAT, attributes=kept)
    return fact


def _numbered(
    tape: Tape,
    kept: Sequence[Fact],
    spared: Sequence[tuple[int, int]],
    aged: Sequence[tuple[int, int]] = (),
) -> tuple[list[Fact], list[int]]:
    """Number ``kept`` from 0; facts that were lost outside of the ``spared`` ranges leave a hole.

    So do facts that have ``aged`` out; a fact after such a hole declares it. Also returns the number of
    each on ``tape``; -1 for facts that declare something.
    """
    lost = (
        (first, last)
        for first, last in _holes(tape)
        if not any(start <= first and last < end for start, end in spared)
    )
    lost_holes, aged_holes = _Holes(lost), _Holes(aged)
    numbered: list[Fact] = []
    origins: list[int] = []
    number = 0
    for fact in kept:
        number += lost_holes.before(fact.seq)
        gone = aged_holes.before(fact.seq)
        if gone:
            number += gone
            said = {
                a.PLAYHEAD_GAP_FIRST: number - gone,
                a.PLAYHEAD_GAP_LAST: number - 1,
                a.PLAYHEAD_GAP_REASON: AGED_OUT,
            }
            gap = Fact(fact.time_ns, 0, e.PLAYHEAD_GAP, attributes=said)
            numbered.append(msgspec.structs.replace(gap, instance=fact.instance, seq=number))
            origins.append(-1)
            number += 1
        attributes = fact.attributes
        if a.PLAYHEAD_PROCESS_LAST_SEQ in attributes:
            attributes = {**attributes, a.PLAYHEAD_PROCESS_LAST_SEQ: number}
        numbered.append(msgspec.structs.replace(fact, seq=number, attributes=attributes))
        origins.append(fact.seq)
        number += 1
    return numbered, origins


class _Holes:
    """Ascending ranges of numbers, consumed one after the other."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._rest = iter(ranges)
        self._next = next(self._rest, None)

    def before(self, seq: int) -> int:
        """Return how many numbers before ``seq`` lie in the ranges that were not consumed yet."""
        count = 0
        while self._next is not None and self._next[0] < seq:
            count += self._next[1] - self._next[0] + 1
            self._next = next(self._rest, None)
        return count


def _holes(tape: Tape) -> Iterable[tuple[int, int]]:
    if isinstance(tape, IndexedTape):
        return tape.gaps()
    return MemoryTape(tape.facts()).gaps()
