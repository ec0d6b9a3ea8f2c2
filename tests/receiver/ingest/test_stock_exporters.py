"""OpenTelemetry's own exporters reach the receiver with no word about playhead."""

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import StatusCode

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver


def exporters(receiver: Receiver) -> dict[str, Any]:
    traces = f"{receiver.http_endpoint}/v1/traces"
    return {
        "http": HttpSpanExporter(endpoint=traces, timeout=60),
        "http gzip": HttpSpanExporter(endpoint=traces, timeout=60, compression=Compression.Gzip),
        "http deflate": HttpSpanExporter(endpoint=traces, timeout=60, compression=Compression.Deflate),
        "grpc": GrpcSpanExporter(endpoint=receiver.grpc_endpoint, insecure=True, timeout=60),
    }


@pytest.mark.parametrize("which", ["http", "http gzip", "http deflate", "grpc"])
def test_spans_of_the_sdk_are_stored_and_listed(tmp_path: Path, which: str):
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=0))) as receiver:
        provider = TracerProvider(resource=Resource.create({"service.name": "travel planner"}))
        provider.add_span_processor(BatchSpanProcessor(exporters(receiver)[which]))
        tracer = provider.get_tracer("test")
        with tracer.start_as_current_span("invoke_agent planner") as root:
            usage = {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "gpt-4o",
                "gen_ai.usage.input_tokens": 812,
                "gen_ai.usage.output_tokens": 64,
            }
            with tracer.start_as_current_span("chat gpt-4o", attributes=usage) as chat:
                chat.add_event("first token", {"at": 1})
            with tracer.start_as_current_span("execute_tool search") as tool:
                tool.set_attribute("gen_ai.operation.name", "execute_tool")
                tool.set_status(StatusCode.ERROR, "no such order")
        provider.shutdown()
        trace_id = root.get_span_context().trace_id.to_bytes(16, "big")
        spans = [
            ResourceSpans.FromString(stored.otlp).scope_spans[0].spans[0]
            for stored in receiver.store.spans(trace_id)
        ]
        assert [span.name for span in spans] == [
            "chat gpt-4o",
            "execute_tool search",
            "invoke_agent planner",
        ]
        assert spans[0].events[0].name == "first token"
        assert spans[0].kind == Span.SPAN_KIND_INTERNAL
        run = receiver.store.resolve("travel-planner-1")
        assert run.trace_id == trace_id.hex()
        assert (run.status, run.steps, run.errors) == ("success", 2, 1)
        assert (run.input_tokens, run.output_tokens, run.models) == (812, 64, ["gpt-4o"])


def test_log_records_of_the_sdk_are_accepted(tmp_path: Path):
    from opentelemetry._logs import LogRecord
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=0))) as receiver:
        provider = LoggerProvider(resource=Resource.create({"service.name": "shop"}))
        exporter = GrpcLogExporter(endpoint=receiver.grpc_endpoint, insecure=True, timeout=60)
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
        provider.get_logger("test").emit(
            LogRecord(event_name="gen_ai.choice", body={"role": "assistant"})
        )
        assert provider.force_flush(60_000)
        provider.shutdown()
        assert receiver.intake.counted.log_records == 1
        assert receiver.intake.counted.facts == 0
