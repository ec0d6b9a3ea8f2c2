"""The entry of a bundle in the index of attributes: the keys that its trace did not have before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_receiver.storage.runs.attribute_keys import keys_of
from playhead_receiver.storage.values.stored import StoredSpan

KEPT = 1_000_000
"""Most remembered keys, of the most recent traces; keys of other traces may be indexed twice."""


class Signatures:
    """Remembers which keys were indexed recently. Used by one thread at a time."""

    def __init__(self) -> None:
        self._traces: OrderedDict[bytes, set[bytes]] = OrderedDict()
        self._count = 0

    def fresh(self, trace_id: bytes, spans: Iterable[StoredSpan]) -> bytes:
        """The concatenated keys of spans that their trace did not have yet."""
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
        """Forget all keys: the index did not keep them after all, or has lost them."""
        self._traces.clear()
        self._count = 0
