"""Volatile values of a replay: what its clock and entropy handed out, and requests with these in them.

The hooks of clocks and entropy tell `HandedOut` each value that they give the program. For a request
that no recording answers exactly, a player asks `Volatile`::

    now = Request.of(body, ask.key)
    found = volatile.compare(Request.of(recorded_body, recorded.ask.key), now)
    if isinstance(found, Proposal) and volatile.accept(found) is None:
        ...  # it answers: found.text goes on the request fact, parts through volatile.translated_parts
    else:
        ...  # an `Unlike` says where and why: the next candidate, or a divergence

Not recognised, and so a difference: what is computed of a value (a hash, a sum, a time an hour from
now), durations that were rounded to fewer than five digits behind the point, whole numbers of fewer than
32 random bits, choices of a list, base32 and base58, bytes that are no text, times without a zone in one
that is neither UTC nor local nor was told.

What a form is, where requests differ, and the check of pairs by whoever reads the tape, are in
`playhead_semconv.volatile`.
"""

from playhead_instrumentation.determinism.volatile.handed_out import HandedOut
from playhead_instrumentation.determinism.volatile.translation import Stream
from playhead_instrumentation.determinism.volatile.volatile import Proposal, Volatile

__all__ = ["HandedOut", "Proposal", "Stream", "Volatile"]
