"""What the index of attributes keeps of a bundle: keys that its trace did not have before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_receiver.store.protocol.store import StoredSpan
from playhead_receiver.store.runs.attribute_keys import keys_of

KEPT = 1_000_000
"""Keys that are remembered, of the traces that came last; those of others may be kept twice."""


class Signatures:
    """Remembers what was kept of late. One thread at a time."""

    def __init__(self) -> None:
        self._traces: OrderedDict[bytes, set[bytes]] = OrderedDict()
        self._count = 0

    def fresh(self, trace_id: bytes, spans: Iterable[StoredSpan]) -> bytes:
        """The keys of spans that their trace did not have, one behind the other."""
        known = self._traces.setdefault(trace_id, set())
        self._traces.move_to_end(trace_id)
        found: set[bytes] = set()
        for span in spans:
            found.update(keys_of(ResourceSpans.FromString(span.otlp)))
        found -= known
        known |= found
        self._count += len(found)
        while self._count > KEPT and len(self._traces) > 1:
            self._count -= len(self._traces.popitem(last=False)[1])
        return b"".join(sorted(found))

    def forget(self) -> None:
        """What was given out was not kept after all, or is no more."""
        self._traces.clear()
        self._count = 0
