"""Volatile values of a replay: values from its clock and entropy, and requests that contain them.

The hooks of clocks and entropy report each value that they give the program to `HandedOut`. For a
request that no recording answers exactly, a player asks `Volatile`::

    now = Request.of(body, ask.key)
    found = volatile.compare(Request.of(recorded_body, recorded.ask.key), now)
    if isinstance(found, Proposal) and volatile.accept(found) is None:
        ...  # it answers: found.text goes on the request fact, parts through volatile.translated_parts
    else:
        ...  # an `Unlike` says where and why: the next candidate, or a divergence

These are not recognised and count as differences: values computed from a volatile value (a hash, a sum,
a time an hour from now), durations rounded to fewer than five decimals, whole numbers of fewer than 32
random bits, choices from a list, base32 and base58, bytes that are not text, and times without a zone
that are neither in UTC, nor in the local zone, nor in a zone that was reported.

`playhead_core.normalize` has the forms, the comparison of requests, and the check of pairs by readers
of a tape.
"""

from playhead_instrumentation.replayer.volatile.handed_out import HandedOut
from playhead_instrumentation.replayer.volatile.translation import Stream
from playhead_instrumentation.replayer.volatile.volatile import Proposal, Volatile

__all__ = ["HandedOut", "Proposal", "Stream", "Volatile"]
