"""When the pieces of answers came, for a timeline; no content is read."""

from __future__ import annotations

from collections.abc import Collection

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_receiver.api.models.reading import ChunkTimes
from playhead_receiver.storage import RunSummary, Store
from playhead_receiver.storage.spans.whole_spans import (
    attributes_of,
    reference_of,
    request_reference,
    span_of,
)
from playhead_receiver.storage.values.stored import StoredTape
from playhead_semconv import attributes as a

MOST = 256
"""Times of one answer: more cannot be told apart in a bar."""
_CALL = frozenset((a.PLAYHEAD_EXCHANGE_REF,))


def chunk_times(store: Store, run: RunSummary, span_ids: Collection[bytes]) -> ChunkTimes:
    """Of finished spans of a run that are attempts, or calls: the last attempt of these."""
    found = ChunkTimes(span_id=[], time_ns=[])
    tapes: dict[bytes, StoredTape] = {}
    for stored in store.spans(bytes.fromhex(run.trace_id), span_ids):
        envelope = ResourceSpans.FromString(stored.otlp)
        span = span_of(envelope)
        named = reference_of(attributes_of(span, _CALL)) or request_reference(envelope)
        if named is None:
            continue
        instance, id = named
        if instance not in tapes:
            tapes[instance] = store.tape(instance)
        exchange = tapes[instance].exchange(id)
        if exchange is None:
            continue
        first, last = span.start_time_unix_nano, span.end_time_unix_nano
        times = [one.time_ns - run.started_ns for one in exchange.parts if first <= one.time_ns <= last]
        found.span_id.append(span.span_id.hex())
        found.time_ns.append(_thinned(times))
    return found


def _thinned(times: list[int]) -> list[int]:
    """At most `MOST` of them, the first and the last among them."""
    if len(times) <= MOST:
        return times
    return [times[at * (len(times) - 1) // (MOST - 1)] for at in range(MOST)]
