"""A program that makes spans with OpenTelemetry's SDK and sends them with one of its exporters.

``python sender.py TRANSPORT ENDPOINT FILE``, TRANSPORT: grpc, http or json, ``+gzip`` behind it. Each
number that it reads on standard input is so many traces; when all of them are exported it says how
many batches were given up. What it made goes to FILE, one span a line, as
`support.outside.interop` compares it.
"""

import json
import sys
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

SPANS_PER_TRACE = 50
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
STATE = TraceState([("vendor", "a:1")])
FAR = SpanContext(0xFACE, 0xCAFE, True, SAMPLED)  # the exporters leave the state of links out


def exporter_of(transport: str, endpoint: str) -> SpanExporter:
    transport, _, compression = transport.partition("+")
    if transport == "grpc":
        import grpc
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

        kind = grpc.Compression.Gzip if compression else grpc.Compression.NoCompression
        return OTLPSpanExporter(endpoint=endpoint, insecure=True, compression=kind, timeout=60)
    if transport == "http":
        from opentelemetry.exporter.otlp.proto.http import Compression
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    else:
        from opentelemetry.exporter.otlp.common.http import Compression
        from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter
    packed = Compression(compression or "none")
    return OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=60, compression=packed)


class Counted(SpanExporter):
    """Counts what the exporter below it gives up."""

    def __init__(self, below: SpanExporter) -> None:
        self._below = below
        self.failed = 0

    def export(self, spans: Any) -> SpanExportResult:
        result = self._below.export(spans)
        self.failed += result is not SpanExportResult.SUCCESS
        return result

    def shutdown(self) -> None:
        self._below.shutdown()


class Kept(SpanProcessor):
    """Writes down what was made."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "w")

    def on_end(self, span: ReadableSpan) -> None:
        self._file.write(json.dumps(plain_span(span)) + "\n")

    def force_flush(self, timeout_millis: int = 0) -> bool:
        self._file.flush()
        return True


def plain_span(span: ReadableSpan) -> dict[str, Any]:
    context, scope = span.context, span.instrumentation_scope
    assert context is not None and scope is not None
    return {
        "trace": f"{context.trace_id:032x}",
        "span": f"{context.span_id:016x}",
        "parent": f"{span.parent.span_id:016x}" if span.parent else "",
        "state": context.trace_state.to_header(),
        "name": span.name,
        "kind": span.kind.value + 1,
        "times": [span.start_time, span.end_time],
        "status": [span.status.status_code.value, span.status.description or ""],
        "attributes": plain(span.attributes or {}),
        "events": [[one.name, one.timestamp, plain(one.attributes or {})] for one in span.events],
        "links": [
            [
                f"{one.context.trace_id:032x}",
                f"{one.context.span_id:016x}",
                one.context.trace_state.to_header(),
                plain(one.attributes or {}),
            ]
            for one in span.links
        ],
        "resource": plain(span.resource.attributes),
        "scope": [scope.name, scope.version or "", plain(scope.attributes or {})],
    }


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "items"):
        return {key: plain(one) for key, one in value.items()}
    return value


def make_trace(provider: TracerProvider, number: int) -> None:
    tracers = [
        provider.get_tracer("agent.one", "1.2.3", attributes={"scope.is": "one"}),
        provider.get_tracer("agent.two"),
    ]
    away = SpanContext((number << 64) + 0xABC, number, True, SAMPLED, STATE)
    above = set_span_in_context(NonRecordingSpan(away))
    history: list[dict[str, Any]] = []
    with tracers[0].start_as_current_span(f"invoke_agent №{number}", above, SpanKind.SERVER):
        for step in range(1, SPANS_PER_TRACE):
            history.append(
                {"role": "user", "parts": [{"type": "text", "content": f"ask {step}: ☃ 🛰 é" * 5}]}
            )
            span = tracers[step % 2].start_span(
                f"chat {step}",
                kind=list(SpanKind)[step % 5],
                attributes={
                    "gen_ai.operation.name": "chat",
                    "gen_ai.input.messages": json.dumps(history),
                    "gen_ai.usage.input_tokens": step,
                    "text": 'zero \0, quote ", slash \\, line\n, far \U0001f469\u200d\U0001f680, ﷽',
                    "empty": "",
                    "greatest": (1 << 63) - 1,
                    "least": -(1 << 63),
                    "past double": (1 << 53) + 1,
                    "share": 0.1 + step,
                    "huge": 1e300,
                    "yes": True,
                    "list": [f"ü{step}", "", "b"],
                    "numbers": [1, -2, 1 << 60],
                    "halves": [0.5, -0.25],
                    "none": [],
                    "bytes": b"\x00\xff\xfe",
                    "map": {"a": {"b": [1, "two", None, 3.5]}},
                },
                links=[Link(FAR, {"why": "cause", "step": step})],
            )
            span.add_event("gen_ai.choice", {"index": step, "say": ["é", "🛰"]})
            span.add_event("plain")
            if step % 7 == 0:
                span.record_exception(ValueError(f"wrong ☃ {step}"))
                span.set_status(StatusCode.ERROR, f"failed ☃ {step}")
            elif step % 3 == 0:
                span.set_status(StatusCode.OK)
            span.end()


def main(transport: str, endpoint: str, path: str) -> None:
    resource = Resource({"service.name": "interop ☃", "service.version": "7", "numbers": [1, 2, 3]})
    provider = TracerProvider(resource=resource)
    counted = Counted(exporter_of(transport, endpoint))
    provider.add_span_processor(Kept(path))
    provider.add_span_processor(BatchSpanProcessor(counted, max_queue_size=100_000))
    made = 0
    for line in sys.stdin:
        for _ in range(int(line)):
            made += 1
            make_trace(provider, made)
        flushed = provider.force_flush(120_000)
        print(json.dumps({"failed": counted.failed, "flushed": flushed}), flush=True)
    provider.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
