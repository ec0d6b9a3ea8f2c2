"""The request index: where the facts of one run are on the tape of a service, which serves many runs.

A *key* is bytes: a lane (8 bytes), a trace (16 bytes), the digest of a content that facts extend or
refer to (32 bytes), or empty for what the process reports about its program. An *entry*, a row of the
table ``strand``, says that a frame of facts has facts with this key. For a lane that is declared in the
frame, the entry also has its parent: another lane, or the trace whose request began it.
"""

from __future__ import annotations

from collections.abc import Iterable

from playhead_core.facts import Content, Fact
from playhead_core.tape.folds import is_inbound
from playhead_core.tape.slices import has_news, parent_of
from playhead_semconv import events as e

NEWS = b""
UNKNOWN = b"?"
"""Key that marks a process with incomplete entries: later facts arrived before its first request."""

UNNOTED = b"!"
"""Key that marks a process with entries from before contents had keys: some are missing."""

LANE_BYTES = 8
TRACE_BYTES = 16
_LANES = (1 << 8 * LANE_BYTES) - 1


def lane_key(lane: int) -> bytes:
    """The key of a lane."""
    return (lane & _LANES).to_bytes(LANE_BYTES, "big")


def needs_of(body: Content | None) -> set[bytes]:
    """Digests of the contents that are needed to read a body."""
    if body is None:
        return set()
    needs = [body.base, body.digest if body.inline is None else None]
    return {digest for digest in needs if digest}


def index_entries(facts: Iterable[Fact]) -> dict[bytes, bytes | None]:
    """The keys in a frame of facts, each with the parent of a lane that is declared in the frame."""
    found: dict[bytes, bytes | None] = {}
    for fact in facts:
        lane = lane_key(fact.lane)
        found.setdefault(lane, None)
        if any(fact.trace_id):
            found.setdefault(fact.trace_id, None)
        for digest in needs_of(fact.body):
            found.setdefault(digest, None)
        if is_inbound(fact):
            found[lane] = fact.trace_id
        elif fact.name == e.PLAYHEAD_LANE and found[lane] is None:
            parent = parent_of(fact)
            found[lane] = lane_key(parent) if parent >= 0 else None
        elif has_news(fact):
            found.setdefault(NEWS, None)
    return found
