"""Metrics of calls to models by the GenAI conventions, from the spans that have arrived.

Names and bounds of the histograms are those of the conventions, names as Prometheus spells them. They
begin at zero when the receiver starts. `maintenance.counted_once` decides which spans are counted. A
response from the tape, in a fork or a resume, is not counted.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from prometheus_client import CollectorRegistry, Histogram

from playhead_core.untrusted.shown_text import visible
from playhead_receiver.storage.spans.span_view import parse_span, summarize, words_of
from playhead_receiver.storage.spans.whole_spans import span_of
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiTokenType

SECONDS = tuple(0.01 * 2**power for power in range(14))
TOKENS = tuple(float(4**power) for power in range(14))
FIRST_CHUNK_SECONDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1),
    *(0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)
NAMES = (
    a.GEN_AI_OPERATION_NAME,
    a.GEN_AI_PROVIDER_NAME,
    a.GEN_AI_REQUEST_MODEL,
    a.GEN_AI_RESPONSE_MODEL,
    a.SERVER_ADDRESS,
)
"""Labels of each metric."""
MOST_KINDS = 500
"""Number of label sets that are distinguished, as senders of spans choose the names of models."""
LONGEST = 100
"""Most characters of a label."""
OTHER = ("_OTHER",) * len(NAMES)


def _label(name: str) -> str:
    return name.replace(".", "_")


LABELS = tuple(map(_label, NAMES))


class SeenCall(msgspec.Struct, frozen=True):
    """The values of a span that the metrics count."""

    kind: tuple[str, ...]
    """Values of `NAMES`."""
    seconds: float
    waited_s: float
    """Seconds until the first chunk; 0 if it was not streamed."""
    error_type: str
    input: int
    output: int
    played: bool
    """Whether its response came from a tape."""


def seen_call(envelope: ResourceSpans) -> SeenCall:
    """The values to count of a span with its derived attributes."""
    span = parse_span(span_of(envelope).SerializeToString())
    recorded = any(pair.key == a.PLAYHEAD_INSTANCE for pair in envelope.resource.attributes)
    summary, at = summarize(span, recorded), words_of(span, recorded)
    label = summary.label
    return SeenCall(
        kind=(
            _text(at, a.GEN_AI_OPERATION_NAME),
            label.provider,
            label.asked_model or _text(at, a.GEN_AI_REQUEST_MODEL),
            _text(at, a.GEN_AI_RESPONSE_MODEL),
            _text(at, a.SERVER_ADDRESS),
        ),
        seconds=max(0, summary.end_ns - summary.start_ns) / 1e9,
        waited_s=float(at[_FIRST].double_value) if _FIRST in at else 0.0,
        error_type=label.error_type,
        input=summary.usage.input,
        output=summary.usage.output,
        played=label.played,
    )


class CallMetrics:
    """The metrics of one store's calls. Safe from any thread."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._kinds: set[tuple[str, ...]] = set()
        self._lock = threading.Lock()
        self._duration = Histogram(
            "gen_ai_client_operation_duration_seconds",
            "Duration of model calls.",
            (*LABELS, _label(a.ERROR_TYPE)),
            registry=self.registry,
            buckets=SECONDS,
        )
        self._tokens = Histogram(
            "gen_ai_client_token_usage",
            "Tokens used by model calls.",
            (*LABELS, _label(a.GEN_AI_TOKEN_TYPE)),
            registry=self.registry,
            buckets=TOKENS,
        )
        self._first_chunk = Histogram(
            "gen_ai_client_operation_time_to_first_chunk_seconds",
            "Time to the first chunk of streamed model calls.",
            LABELS,
            registry=self.registry,
            buckets=FIRST_CHUNK_SECONDS,
        )

    def count(self, call: SeenCall, *, called: bool, bears: bool) -> None:
        """Count a span: as a call (``called``), and its tokens (``bears``)."""
        kind = self._kind(*call.kind)
        if called:
            self._duration.labels(*kind, self._error(kind, call.error_type)).observe(call.seconds)
            if 0 < call.waited_s <= call.seconds:
                self._first_chunk.labels(*kind).observe(call.waited_s)
        if bears and call.input:
            self._tokens.labels(*kind, GenAiTokenType.INPUT).observe(call.input)
        if bears and call.output:
            self._tokens.labels(*kind, GenAiTokenType.OUTPUT).observe(call.output)

    def _kind(self, *said: str) -> tuple[str, ...]:
        return self._known(tuple(visible(text)[:LONGEST] for text in said), OTHER)

    def _error(self, kind: tuple[str, ...], error: str) -> str:
        shown = visible(error)[:LONGEST]
        return self._known((*kind, shown), (*kind, OTHER[0]))[-1] if shown else ""

    def _known(self, kind: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
        """``kind``, or ``other`` if too many are distinguished already."""
        with self._lock:
            if kind not in self._kinds and len(self._kinds) >= MOST_KINDS:
                return other
            self._kinds.add(kind)
        return kind


_FIRST = a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK


def _text(at: Any, name: str) -> str:
    return str(at[name].string_value) if name in at else ""
