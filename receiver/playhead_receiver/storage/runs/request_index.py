"""Where the facts of one run lie on the tape of a process that serves many.

A *strand* is named by bytes. It is a lane (8 bytes), a trace (16 bytes), a content that facts extend or
refer to (its digest, 32 bytes), or, with the empty name, what the process reports about its program. A
row per strand and stretch of facts says that the stretch has facts of the strand. For a lane declared
in the stretch, the row also has its parent: another lane, or the trace whose request began it.
"""

from __future__ import annotations

from collections.abc import Iterable

from playhead_core.facts import Content, Fact
from playhead_core.tape.folds import is_inbound
from playhead_core.tape.slices import has_news, parent_of
from playhead_semconv import events as e

NEWS = b""
UNKNOWN = b"?"
"""Marks a process whose rows are incomplete: later facts arrived before its first request."""

UNNOTED = b"!"
"""Marks a process with rows from before contents were noted as strands: some of these are missing."""

LANE_BYTES = 8
TRACE_BYTES = 16
_LANES = (1 << 8 * LANE_BYTES) - 1


def lane_strand(lane: int) -> bytes:
    """The name of a lane's strand."""
    return (lane & _LANES).to_bytes(LANE_BYTES, "big")


def needs_of(body: Content | None) -> set[bytes]:
    """Digests of the contents that are needed to read a body."""
    if body is None:
        return set()
    needs = [body.base, body.digest if body.inline is None else None]
    return {digest for digest in needs if digest}


def strands_of(facts: Iterable[Fact]) -> dict[bytes, bytes | None]:
    """The strands in a stretch of facts, each with its parent strand if the stretch declares it."""
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
