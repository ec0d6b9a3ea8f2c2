"""Where the facts of one run lie on the tape of a process that serves many.

A *strand* is a lane (8 bytes), a trace (16 bytes), a content that facts go on from or point to (its
digest, 32 bytes), or, named by no byte, what the process says of its program. A row per strand and
stretch of facts says in which stretches it lies, and, of a lane that is declared there, what it lies
below: another lane, or the trace whose request began it.
"""

from __future__ import annotations

from collections.abc import Iterable

from playhead_semconv import events as e
from playhead_semconv.facts import Content, Fact
from playhead_semconv.tape.folds import is_inbound
from playhead_semconv.tape.slices import has_news, parent_of

NEWS = b""
UNKNOWN = b"?"
"""A strand of a process whose rows are not all there: later facts came before its first request."""

UNNOTED = b"!"
"""A strand of a process whose rows are older than those of contents: some of these are not noted."""

LANE_BYTES = 8
TRACE_BYTES = 16
_LANES = (1 << 8 * LANE_BYTES) - 1


def lane_strand(lane: int) -> bytes:
    """What the strand of a lane is called."""
    return (lane & _LANES).to_bytes(LANE_BYTES, "big")


def needs_of(body: Content | None) -> set[bytes]:
    """The contents without which a body cannot be read: digests."""
    if body is None:
        return set()
    needs = [body.base, body.digest if body.inline is None else None]
    return {digest for digest in needs if digest}


def strands_of(facts: Iterable[Fact]) -> dict[bytes, bytes | None]:
    """The strands in a stretch of facts, each with what it lies below where that is declared there."""
    found: dict[bytes, bytes | None] = {}
    for fact in facts:
        lane = lane_strand(fact.lane)
        found.setdefault(lane, None)
        if any(fact.trace_id):
            found.setdefault(fact.trace_id, None)
        for digest in needs_of(fact.body):
            found.setdefault(digest, None)
        if is_inbound(fact):
            found[lane] = fact.trace_id
        elif fact.name == e.PLAYHEAD_LANE and found[lane] is None:
            parent = parent_of(fact)
            found[lane] = lane_strand(parent) if parent >= 0 else None
        elif has_news(fact):
            found.setdefault(NEWS, None)
    return found
