"""A program with stock OpenTelemetry exporters that sends spans, events and log records."""

from __future__ import annotations

import json
import time
from typing import Any

from opentelemetry import context, trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5.5"}


def text_message(role: str, text: str) -> str:
    """Messages with one text, as an attribute."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def send(endpoint: str) -> str:
    """Send one run to a receiver; return its trace id."""
    resource = Resource.create({"service.name": "sender"})
    spans, logs = TracerProvider(resource=resource), LoggerProvider(resource=resource)
    spans.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(f"{endpoint}/v1/logs")))
    tracer, logger = spans.get_tracer("app"), logs.get_logger("app")

    def emit(
        name: str | None = None,
        body: Any = None,
        level: SeverityNumber = SeverityNumber.INFO,
        **attributes: Any,
    ) -> None:
        logger.emit(
            LogRecord(
                timestamp=time.time_ns(),
                event_name=name,
                body=body,
                attributes={key.replace("__", "."): value for key, value in attributes.items()},
                severity_number=level,
                context=context.get_current(),
            )
        )

    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    with tracer.start_as_current_span("invoke_agent planner", attributes=agent) as root:
        with tracer.start_as_current_span("chat gpt-5.5", kind=trace.SpanKind.CLIENT, attributes=CHAT):
            emit(
                "gen_ai.client.inference.operation.details",
                gen_ai__input__messages=text_message("user", "zebra question only in the log"),
                gen_ai__output__messages=text_message("assistant", "zebra answer only in the log"),
            )
            emit(body="cache miss for wombat 81", level=SeverityNumber.WARN, logger="app.cache")
            emit("playhead.decision", {"question": "which tool", "chosen": "api"})
            emit(
                "gen_ai.evaluation.result",
                gen_ai__evaluation__name="relevance",
                gen_ai__evaluation__score__value=0.9,
            )
        with tracer.start_as_current_span("chat gpt-5.5", kind=trace.SpanKind.CLIENT, attributes=CHAT):
            emit("gen_ai.system.message", {"content": "be brief"})
            emit("gen_ai.user.message", {"content": "quagga question"})
            call = {"name": "search", "arguments": '{"q": "quagga"}'}
            message = {"role": "assistant", "tool_calls": [{"id": "c1", "function": call}]}
            emit("gen_ai.choice", {"index": 0, "finish_reason": "tool_calls", "message": message})
        with tracer.start_as_current_span("chat gpt-5.5", attributes=CHAT) as span:
            span.add_event("gen_ai.user.message", {"content": '[{"text": "okapi question"}]'})
            use = {"toolUse": {"toolUseId": "t1", "name": "find", "input": {"q": "okapi"}}}
            span.add_event("gen_ai.assistant.message", {"content": json.dumps([use])})
            result = {"toolResult": {"toolUseId": "t1", "content": [{"text": "found okapi"}]}}
            span.add_event("gen_ai.tool.message", {"role": "tool", "content": json.dumps([result])})
            span.add_event(
                "gen_ai.choice", {"finish_reason": "end_turn", "message": '[{"text": "okapi answer"}]'}
            )
        emit(body="done", level=SeverityNumber.ERROR)
    assert spans.force_flush()
    spans.shutdown()
    logs.shutdown()
    return f"{root.get_span_context().trace_id:032x}"
