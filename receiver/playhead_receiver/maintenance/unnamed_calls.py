"""Derives GenAI attributes of stored requests without GenAI instrumentation from their bytes.

A program that calls a model without an instrumented SDK sends plain HTTP requests. Their bytes say which
model was called, what it answered, and how many tokens that used. Afterwards their spans have these
attributes wherever they are read, and the run's summary counts them. Calls over a WebSocket get spans
of their own.
The counter gets each call once, when it has come in.

Spans and facts may come in any order, e.g. through a Collector that has a queue for each. A request
whose bytes have not arrived is examined again when facts of its process arrive.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.facts import DERIVER_VERSION
from playhead_receiver.maintenance.call_metrics import SeenCall, seen_call
from playhead_receiver.maintenance.counted_once import CountedOnce
from playhead_receiver.storage.api.maintenance import CallDerivation
from playhead_receiver.storage.api.store import OF_ONE_RUN
from playhead_receiver.storage.runs.summary_fold import bare_requests
from playhead_receiver.storage.spans.span_view import parse_span, summarize
from playhead_receiver.storage.spans.whole_spans import Deriver, span_of
from playhead_receiver.storage.values.span_labels import AWAITED, DerivedCall, SpanRow
from playhead_receiver.storage.values.stored import Batch, StoredSpan

log = logging.getLogger(__name__)

AT_ONCE = 500
"""Number of spans of a run whose derived attributes are written together."""
MOST_AWAITED = 1000
"""Processes whose facts are awaited, the latest ones."""


class Counter(Protocol):
    """Counts calls."""

    def __call__(self, call: SeenCall, *, called: bool, bears: bool) -> None:
        """Count a span: as a call (``called``), and its tokens (``bears``)."""
        ...


class UnnamedCalls:
    """Derives attributes of the requests of a store. For one thread."""

    def __init__(self, store: CallDerivation, count: Counter | None = None) -> None:
        """``count``: is called for each call that arrived since the last pass."""
        self._store = store
        self._count = count
        self._once = CountedOnce()
        self._awaited: OrderedDict[bytes, set[tuple[bytes, bytes]]] = OrderedDict()
        """Trace and span ids of requests by the process instance whose facts about them are missing."""
        self._position: int | None = None
        """Up to which facts were looked for; None at the start."""

    def derive_new(self) -> int:
        """Examine the requests that have arrived; return how many were calls to a model."""
        found = 0
        again = self._arrived()
        come, calls, position = self._store.unexamined_spans()
        for trace_id, span_id in again:
            come.setdefault(trace_id, []).append(span_id)
        for trace_id in come | calls:
            request_ids, called = come.get(trace_id, []), calls.get(trace_id, [])
            seen: dict[bytes, SeenCall] = {}
            try:
                if request_ids:
                    rows = self._store.ancestry(
                        trace_id, request_ids
                    )  # not the outline: the run may be long
                    wanted = set(_requests(rows, False)) | {
                        id for trace, id in again if trace == trace_id
                    }
                    found += self._derive(trace_id, [id for id in request_ids if id in wanted], seen)
                if self._count is not None:
                    self._count_calls(self._count, trace_id, [*request_ids, *called], seen)
            except OF_ONE_RUN as problem:
                log.error("calls of run %s cannot be looked at: %r", trace_id.hex(), problem)
        if position:
            self._store.mark_examined(position)
        return found

    def _arrived(self) -> set[tuple[bytes, bytes]]:
        """Trace and span ids of awaited requests whose processes have sent facts since."""
        up_to, before = self._store.position(), self._position
        self._position = up_to
        if before is None:  # the receiver may have restarted while requests were awaited
            waiting = self._store.awaited_spans()
            return {(trace_id, one) for trace_id, found in waiting.items() for one in found}
        if not self._awaited or before == up_to:
            return set()
        came = self._store.changed_tapes(before, up_to) & self._awaited.keys()
        return {one for instance in came for one in self._awaited.pop(instance)}

    def _await(self, instance: bytes, trace_id: bytes, span_id: bytes) -> None:
        self._awaited.setdefault(instance, set()).add((trace_id, span_id))
        if len(self._awaited) > MOST_AWAITED:
            self._awaited.popitem(last=False)

    def left(self) -> bool:
        """Whether spans have arrived that were not examined yet."""
        *_, position = self._store.unexamined_spans(1)
        return position > 0

    def derive_run(self, trace_id: bytes, *, again: bool = False) -> int:
        """Examine the requests of a run that were not examined yet; return how many called a model.

        ``again``: examine also those that were examined before.
        """
        return self._derive(trace_id, _requests(self._store.outline(trace_id), again))

    def _count_calls(
        self,
        count: Counter,
        trace_id: bytes,
        fresh: Sequence[bytes],
        seen: Mapping[bytes, SeenCall],
    ) -> None:
        """Count spans that describe a call or bear tokens; ``seen``: known calls among them."""
        rows = self._store.ancestry(trace_id, {*fresh, *self._once.open_ends(trace_id)})
        calls, bearers = self._once.of(trace_id, rows, set(fresh))
        counted = calls | bearers
        for stored in self._store.spans(trace_id, counted - seen.keys()):
            envelope = ResourceSpans.FromString(stored.otlp)
            self._count_call(count, stored.span_id, seen_call(envelope), calls, bearers)
        for id in counted & seen.keys():
            self._count_call(count, id, seen[id], calls, bearers)

    @staticmethod
    def _count_call(
        count: Counter, id: bytes, call: SeenCall, calls: set[bytes], bearers: set[bytes]
    ) -> None:
        if not call.played:
            count(call, called=id in calls, bears=id in bearers)

    def _derive(
        self,
        trace_id: bytes,
        request_ids: Sequence[bytes],
        seen: dict[bytes, SeenCall] | None = None,
    ) -> int:
        """Derive attributes of some requests; ``seen`` collects the calls to count."""
        if not request_ids:
            return 0
        deriver, count = Deriver(self._store), 0
        for begin in range(0, len(request_ids), AT_ONCE):
            found: dict[bytes, DerivedCall] = {}
            realtime_calls: list[StoredSpan] = []
            earlier: set[bytes] = set()
            for stored in self._store.spans(trace_id, request_ids[begin : begin + AT_ONCE]):
                meaning, whole = _meaning(deriver, stored)
                instance = deriver.awaits(stored)
                if instance is not None:
                    self._await(instance, trace_id, stored.span_id)
                    meaning = _awaiting(meaning)
                found[stored.span_id] = meaning
                if seen is not None and meaning.label.wire:
                    seen[stored.span_id] = seen_call(whole)
                calls = [
                    StoredSpan(trace_id, span_of(one).span_id, one.SerializeToString())
                    for one in deriver.realtime(stored)
                ]
                count += bool(meaning.label.wire) + len(calls)
                realtime_calls += calls
                if meaning.label.wire and (one := deriver.attempt_before(stored)) is not None:
                    earlier.add(one)
            for stored in self._store.spans(trace_id, earlier - found.keys()):
                found[stored.span_id], _ = _meaning(deriver, stored)
            for span_id in earlier & found.keys():
                found[span_id] = _resent(found[span_id])
            self._store.store_derived(trace_id, found)
            if realtime_calls:
                self._store.commit(Batch(spans=realtime_calls))
        return count


def _requests(rows: Sequence[SpanRow], again: bool) -> list[bytes]:
    """Ids of finished spans that may be calls by their bytes: bare ones, over gRPC, known calls.

    ``again``: calls that an instrumentation named too, as their answers may call tools.
    """
    bare = bare_requests(rows)
    return [
        row.span_id
        for row in rows
        if row.end_ns is not None
        and (
            row.span_id in bare
            or row.label.grpc
            or row.label.wire
            or (again and row.label.step and row.label.model)
        )
        and (again or row.label.derived < DERIVER_VERSION)
    ]


def _meaning(deriver: Deriver, stored: StoredSpan) -> tuple[DerivedCall, ResourceSpans]:
    """The derived attributes of a request, and its whole span; if it is no call, its own."""
    found = deriver.derived_call(stored)
    whole = deriver.whole(stored) if found is None else found[1]
    own = span_of(whole).SerializeToString()
    summary = summarize(parse_span(own), True)
    wire = "" if found is None else found[0]
    label = msgspec.structs.replace(summary.label, wire=wire, derived=DERIVER_VERSION)
    return DerivedCall(label, summary.usage), whole


def _resent(meaning: DerivedCall) -> DerivedCall:
    """The derived attributes of an attempt whose call was sent again: not a step."""
    label = msgspec.structs.replace(meaning.label, attempt=True, step=False, resent=True)
    return DerivedCall(label, meaning.usage)


def _awaiting(meaning: DerivedCall) -> DerivedCall:
    """The derived attributes of a request whose bytes have not all arrived."""
    return DerivedCall(msgspec.structs.replace(meaning.label, derived=AWAITED), meaning.usage)
