"""Determines the meanings of requests without a GenAI instrumentation from their bytes, once stored.

A program that calls a model without an instrumented SDK sends plain HTTP requests. Their bytes say which
model was called, what it answered, and how many tokens that used. Afterwards their spans say so too,
wherever they are read, and so does the run's summary. Calls over a WebSocket get spans of their own.
Who counts calls is told of each as it is found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_receiver.store.protocol.faults import OF_ONE_RUN
from playhead_receiver.store.protocol.upkeep import CallMeanings
from playhead_receiver.store.runs.summary_fold import SpanRow, bare_requests
from playhead_receiver.store.spans.span_view import parse_span, summarize
from playhead_receiver.store.values.span_labels import Meaning
from playhead_receiver.store.values.stored import Batch, StoredSpan
from playhead_semconv.facts import DERIVER_VERSION

if TYPE_CHECKING:
    from playhead_receiver.store.spans.whole_spans import Deriver

log = logging.getLogger(__name__)

AT_ONCE = 500
"""Spans of a run whose meanings are written together."""


class Meanings:
    """Determines the meanings of the requests of a store. For one thread."""

    def __init__(
        self, store: CallMeanings, found: Callable[[ResourceSpans], None] | None = None
    ) -> None:
        """``found``: told of each call that has come in since it was last looked, by its whole span."""
        self._store = store
        self._found = found

    def of_new(self) -> int:
        """Examine the requests that have arrived; return how many were calls to a model."""
        count = 0
        come, calls, position = self._store.to_look_at()
        for trace_id, span_ids in come.items():
            try:
                rows = self._store.lineage(trace_id, span_ids)  # not the outline: the run may be long
                asked = set(_requests(rows, False)).intersection(span_ids)
                bare = asked & bare_requests(rows)
                count += self._look_at(trace_id, [one for one in span_ids if one in bare], self._found)
                enclosed = [one for one in span_ids if one in asked - bare]  # another span is counted
                count += self._look_at(trace_id, enclosed)
            except OF_ONE_RUN as problem:
                log.error("requests of run %s cannot be looked at: %r", trace_id.hex(), problem)
        self._tell(calls)
        if position:
            self._store.looked_at(position)
        return count

    def left(self) -> bool:
        """Whether spans have arrived that were not examined yet."""
        *_, position = self._store.to_look_at(1)
        return position > 0

    def of_run(self, trace_id: bytes, *, again: bool = False) -> int:
        """Examine the requests of a run that were not examined yet; return how many called a model.

        ``again``: examine also those that were examined before.
        """
        return self._look_at(trace_id, _requests(self._store.outline(trace_id), again))

    def _tell(self, calls: Mapping[bytes, Sequence[bytes]]) -> None:
        tell = self._found
        if tell is None:
            return
        for trace_id, span_ids in calls.items():
            try:
                for stored in self._store.spans(trace_id, span_ids):
                    tell(ResourceSpans.FromString(stored.otlp))
            except OF_ONE_RUN as problem:
                log.error("calls of run %s cannot be counted: %r", trace_id.hex(), problem)

    def _look_at(
        self,
        trace_id: bytes,
        asked: Sequence[bytes],
        tell: Callable[[ResourceSpans], None] | None = None,
    ) -> int:
        if not asked:
            return 0
        # most runs do not need it
        from playhead_receiver.store.spans.whole_spans import Deriver, span_of

        deriver, count = Deriver(self._store), 0
        for begin in range(0, len(asked), AT_ONCE):
            found: dict[bytes, Meaning] = {}
            spoken: list[StoredSpan] = []
            earlier: set[bytes] = set()
            for stored in self._store.spans(trace_id, asked[begin : begin + AT_ONCE]):
                meaning, whole = _meaning(deriver, stored)
                found[stored.span_id] = meaning
                if tell is not None and meaning.label.wire:
                    tell(whole)
                calls = [
                    StoredSpan(trace_id, span_of(one).span_id, one.SerializeToString())
                    for one in deriver.realtime(stored)
                ]
                count += bool(meaning.label.wire) + len(calls)
                spoken += calls
                if meaning.label.wire and (one := deriver.attempt_before(stored)) is not None:
                    earlier.add(one)
            for stored in self._store.spans(trace_id, earlier - found.keys()):
                found[stored.span_id], _ = _meaning(deriver, stored)
            for span_id in earlier & found.keys():
                found[span_id] = _resent(found[span_id])
            self._store.mean(trace_id, found)
            if spoken:
                self._store.commit(Batch(spans=spoken))
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


def _meaning(deriver: Deriver, stored: StoredSpan) -> tuple[Meaning, ResourceSpans]:
    """The meaning of a request, and its whole span; if it is no call, what its span says itself."""
    from playhead_receiver.store.spans.whole_spans import span_of

    found = deriver.meant(stored)
    whole = deriver.whole(stored) if found is None else found[1]
    own = span_of(whole).SerializeToString()
    said = summarize(parse_span(own), True)
    wire = "" if found is None else found[0]
    label = msgspec.structs.replace(said.label, wire=wire, derived=DERIVER_VERSION)
    return Meaning(label, said.usage), whole


def _resent(meaning: Meaning) -> Meaning:
    """The meaning of an attempt whose call was sent again: no step of its own."""
    label = msgspec.structs.replace(meaning.label, attempt=True, step=False, resent=True)
    return Meaning(label, meaning.usage)
