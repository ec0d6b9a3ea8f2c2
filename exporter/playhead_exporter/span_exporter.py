"""Span exporters for any OTLP endpoint, bounded in bytes: whole spans, no spool."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from playhead_exporter.delivery import DEFAULT_PORTS, DeliveryNotices, Endpoint, Signal, Trust
from playhead_exporter.encoded import encode_span
from playhead_exporter.shipping.endpoint_answers import Accepted, Transport, TryLater
from playhead_exporter.shipping.http import HttpTransport
from playhead_exporter.shipping.requests import REQUEST_BYTES, bounded, merge_spans
from playhead_exporter.shipping.shipper import Backoff

TIMEOUT_S = 10.0


class PlayheadSpanExporter(SpanExporter):
    """Sends complete spans over OTLP/HTTP in requests that no default size limit refuses.

    Its name in ``OTEL_TRACES_EXPORTER`` is ``playhead_otlp``. Endpoint, headers, timeout and
    certificates come from the standard ``OTEL_EXPORTER_OTLP_*`` variables.
    """

    def __init__(
        self, environ: Mapping[str, str] = os.environ, notices: DeliveryNotices | None = None
    ) -> None:
        """Raises `ConfigurationError` if the endpoint is not an address."""
        text = _variable(environ, "ENDPOINT") or f"http://127.0.0.1:{DEFAULT_PORTS['http/protobuf']}"
        endpoint = Endpoint.parse(text, "http/protobuf")
        self._timeout_s = _seconds(_variable(environ, "TIMEOUT"))
        self._transport: Transport = HttpTransport(
            endpoint,
            "",
            Trust(
                ca=_variable(environ, "CERTIFICATE"),
                certificate=_variable(environ, "CLIENT_CERTIFICATE"),
                key=_variable(environ, "CLIENT_KEY"),
            ),
            _headers(_variable(environ, "HEADERS")),
        )
        self._notices = notices or DeliveryNotices()
        self._stopping = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send all of ``spans``; FAILURE if a part of them was refused or could not be sent in time."""
        singles = (ResourceSpans.FromString(encode_span(span, whole=True)) for span in spans)
        result = SpanExportResult.SUCCESS
        for some in bounded(singles, REQUEST_BYTES - 4096):
            if not self._send(merge_spans(some).SerializeToString()):
                result = SpanExportResult.FAILURE
        return result

    def _send(self, request: bytes) -> bool:
        deadline = time.monotonic() + self._timeout_s
        backoff = Backoff()
        while True:
            left_s = deadline - time.monotonic()
            answer = self._transport.send(Signal.TRACES, request, max(0.001, left_s))
            if isinstance(answer, Accepted):
                if answer.refused:
                    self._notices.say(
                        "partly", f"the endpoint refused {answer.refused} spans: {answer.message}"
                    )
                return True
            self._notices.say("endpoint", f"spans are not delivered: {answer.reason}")
            if not isinstance(answer, TryLater) or self._stopping:
                return False
            wait_s = backoff.failed(answer)
            if time.monotonic() + wait_s >= deadline:
                return False
            time.sleep(wait_s)

    def shutdown(self) -> None:
        """Close the connections."""
        self._stopping = True
        self._transport.close()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """No-op: nothing is buffered here."""
        return True


class ByteBounded(SpanExporter):
    """Splits every call of another exporter so that no request it makes exceeds 4 MiB.

    A span that is larger by itself is passed on alone.
    """

    def __init__(self, exporter: SpanExporter, limit_bytes: int = REQUEST_BYTES) -> None:
        self.exporter = exporter
        self._limit_bytes = limit_bytes - 4096

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Pass ``spans`` on in groups; FAILURE if any group failed."""
        result = SpanExportResult.SUCCESS
        for group in self._groups(spans):
            if self.exporter.export(group) is not SpanExportResult.SUCCESS:
                result = SpanExportResult.FAILURE
        return result

    def _groups(self, spans: Sequence[ReadableSpan]) -> list[list[ReadableSpan]]:
        groups: list[list[ReadableSpan]] = []
        taken = 0
        for span in spans:
            size = encode_spans([span]).ByteSize()
            if not groups or taken + size > self._limit_bytes:
                groups.append([])
                taken = 0
            groups[-1].append(span)
            taken += size
        return groups

    def shutdown(self) -> None:
        """Shut the other exporter down."""
        self.exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Flush the other exporter."""
        return self.exporter.force_flush(timeout_millis)


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}") or environ.get(
        f"OTEL_EXPORTER_OTLP_{name}", ""
    )


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return TIMEOUT_S


def _headers(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs}
