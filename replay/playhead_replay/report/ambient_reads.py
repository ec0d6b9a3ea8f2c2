"""Compares the ambient reads of a replay (clocks, entropy) with those of the tape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from playhead_core.facts import Fact, Fidelity
from playhead_core.tape.coalesced import count_of_reads
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.run.exchanges import lane_names
from playhead_semconv import attributes as a
from playhead_semconv import events as e

STATE = "entropy/random.state"
"""Random state that is restored at the start of every process; not a read by the program."""

CONTENT = "file/content "
"""Content of a large file that had been opened before; not a read by the program."""


@dataclass(frozen=True, slots=True)
class LiveReads:
    """Reads of one kind in one lane that are not on the tape and were answered by the real world."""

    lane: str
    kind: str
    count: int
    recorded: int
    """Number of such reads on the tape."""
    seq: int
    """Number of the first of them on the *now* tape."""


def counts_of_reads(tape: IndexedTape, now: IndexedTape) -> dict[str, dict[Fidelity, int]]:
    """Counts by boundary. ``unused`` counts recorded reads, the others count reads of *now*."""
    asked, held = _counted(now), _counted(tape)
    counts: dict[str, dict[Fidelity, int]] = {}

    def add(kind: str, fidelity: Fidelity, count: int) -> None:
        if count > 0:
            of_boundary = counts.setdefault(kind.partition("/")[0], {})
            of_boundary[fidelity] = of_boundary.get(fidelity, 0) + count

    for key, count in asked.items():
        add(key[1], Fidelity.EXACT, min(count, held[key]))
        add(key[1], Fidelity.LIVE, count - held[key])
    for key, count in held.items():
        add(key[1], Fidelity.UNUSED, count - asked[key])
    return counts


def live_reads(tape: IndexedTape, now: IndexedTape) -> Iterator[LiveReads]:
    """Reads that the real world answered, in order of first occurrence."""
    held = _counted(tape)
    names = lane_names(now)
    asked: Counter[tuple[int, str]] = Counter()
    first: dict[tuple[int, str], int] = {}
    for fact in _reads(now):
        key = _key(fact)
        asked[key] += count_of_reads(fact)
        if asked[key] > held[key]:
            first.setdefault(key, fact.seq)
    for (lane, kind), seq in first.items():
        key = lane, kind
        name = names.get(lane, f"{lane:016x}")
        yield LiveReads(name, kind.partition("/")[2], asked[key] - held[key], held[key], seq)


def _counted(tape: IndexedTape) -> Counter[tuple[int, str]]:
    counts: Counter[tuple[int, str]] = Counter()
    for fact in _reads(tape):
        counts[_key(fact)] += count_of_reads(fact)
    return counts


def _reads(tape: IndexedTape) -> Iterator[Fact]:
    for fact in tape.named(e.PLAYHEAD_READ):
        kind = str(fact.attributes.get(a.PLAYHEAD_READ_KIND, STATE))
        if kind != STATE and not kind.startswith(CONTENT):
            yield fact


def _key(fact: Fact) -> tuple[int, str]:
    return fact.lane, str(fact.attributes[a.PLAYHEAD_READ_KIND])
