"""Reads traces for the compatibility APIs: one by id, whole or capped, or those in a time range."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_receiver.api.compatibility.capping import Cap
from playhead_receiver.api.compatibility.spans import Seen, SeenTrace, seen_of
from playhead_receiver.storage import Query, RunSummary, Store
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.store import offered
from playhead_receiver.storage.runs.costs import NANO, cost_of
from playhead_receiver.storage.runs.summary_fold import token_bearers
from playhead_receiver.storage.spans.whole_spans import Deriver, span_of
from playhead_receiver.storage.values.run_summaries import Need
from playhead_semconv import attributes as a

LONGEST_NS = 24 * 3600 * 10**9
"""Traces that last longer are found by their start time only."""
LAST_NS = (1 << 63) - 1
"""Largest time that a store can compare with; it is in the year 2262."""

SETTLED_NS = 600 * 10**9
"""After this time since the end of a run, no more data of it is expected."""

SPANS_KEPT = 100_000
"""Largest number of spans that are cached in memory, without payloads."""

PATIENCE_S = 20.0
"""Seconds that a query may search through traces; then it returns what it has found."""

TRACES_AT_MOST = 10_000
"""Largest number of traces that a query searches, the newest first."""


class Traces:
    """The traces of one store. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._kept: OrderedDict[bytes, tuple[tuple[int, int, int], SeenTrace]] = OrderedDict()
        self._spans = 0
        self._lock = threading.Lock()

    def envelopes(self, trace_id: bytes, cap: Cap | None = None) -> Iterator[ResourceSpans]:
        """All spans of a trace, one per envelope, with derived attributes; also pending spans."""
        deriver = Deriver(self.store)
        last = 0
        for stored in self.store.spans(trace_id):
            envelope = deriver.whole(stored)
            span = span_of(envelope)
            last = max(last, span.end_time_unix_nano, span.start_time_unix_nano)
            yield envelope if cap is None else cap.apply(envelope)
        for envelope in deriver.pending(trace_id):
            span = span_of(envelope)
            span.end_time_unix_nano = max(last, span.start_time_unix_nano)
            yield envelope if cap is None else cap.apply(envelope)

    def whole(self, trace_id: bytes) -> SeenTrace:
        """A trace including its large values."""
        return SeenTrace(trace_id, (seen_of(one, whole=True) for one in self.envelopes(trace_id)))

    def seen(self, run: RunSummary) -> SeenTrace | None:
        """A trace without its large values; None if it has no spans."""
        trace_id = bytes.fromhex(run.trace_id)
        stamp = (run.spans, run.last_ns, self._pending_of(run, trace_id))
        with self._lock:
            found = self._kept.get(trace_id)
            if found is not None and found[0] == stamp:
                self._kept.move_to_end(trace_id)
                return found[1] if found[1].spans else None
        trace = SeenTrace(trace_id, self._light(trace_id))
        with self._lock:
            self._forget(trace_id)
            self._kept[trace_id] = (stamp, trace)
            self._spans += len(trace.spans)
            while self._spans > SPANS_KEPT and len(self._kept) > 1:
                self._forget(next(iter(self._kept)))
        return trace if trace.spans else None

    def between(
        self, start_ns: int | None, end_ns: int | None, needs: Sequence[Need] = ()
    ) -> Iterator[RunSummary]:
        """Runs with data in this time range, newest first. Stops after a time limit.

        ``needs``: only runs that may have the needed attributes (`store.runs.attribute_keys`).
        """
        until = time.monotonic() + PATIENCE_S
        search = offered(self.store, Search) if needs else None
        having = None if search is None else search.having(needs)
        query = Query(
            mode=None,
            limit=TRACES_AT_MOST,
            started_from_ns=None if start_ns is None else min(max(start_ns - LONGEST_NS, 0), LAST_NS),
            started_before_ns=None if end_ns is None else min(end_ns + 1, LAST_NS),
            traces=None if having is None else frozenset(having),
        )
        for run in self.store.runs(query):
            if start_ns is None or run.last_ns >= start_ns:
                yield run
            if time.monotonic() > until:
                return

    def looked_through(
        self,
        start_ns: int | None,
        end_ns: int | None,
        names: Collection[str] = (),
        needs: Sequence[Need] = (),
    ) -> Iterator[SeenTrace]:
        """Traces in this time range, newest first.

        A trace is read whole if its short form leaves out one of ``names``.
        """
        for run in self.between(start_ns, end_ns, needs):
            trace = self.seen(run)
            if trace is None:
                continue
            if not trace.left_out.isdisjoint(names):
                trace = self.whole(trace.trace_id)
            if a.PLAYHEAD_COST_USD in names:
                self._price(trace)
            yield trace

    def _price(self, trace: SeenTrace) -> None:
        """Add the cost to each span that used tokens itself; spans above it only have sums."""
        for row in token_bearers(self.store.outline(trace.trace_id)):
            billionths, _ = cost_of([(row.label, row.usage, row.start_ns)])
            span = trace.by_id.get(row.span_id)
            if billionths is not None and span is not None:
                span.attributes[a.PLAYHEAD_COST_USD] = billionths / NANO

    def _light(self, trace_id: bytes) -> Iterator[Seen]:
        last = 0
        for stored in self.store.spans(trace_id):
            seen = seen_of(ResourceSpans.FromString(stored.otlp))
            last = max(last, seen.end_ns, seen.start_ns)
            yield seen
        for envelope in Deriver(self.store).pending(trace_id):
            span = span_of(envelope)
            span.end_time_unix_nano = max(last, span.start_time_unix_nano)
            yield seen_of(envelope)

    def _pending_of(self, run: RunSummary, trace_id: bytes) -> int:
        """Number of spans that have not arrived; 0 for a run that ended long ago."""
        if run.status in ("success", "failure") and time.time_ns() - run.last_ns > SETTLED_NS:
            return 0
        return sum(row.end_ns is None for row in self.store.outline(trace_id))

    def _forget(self, trace_id: bytes) -> None:
        gone = self._kept.pop(trace_id, None)
        if gone is not None:
            self._spans -= len(gone[1].spans)
