"""One variant in a process of its own: reads workload names from stdin, answers with times.

Each answer is a line of JSON: ``ns`` (one figure per repetition), ``whole_ns`` (the batch, without the
background work after it) and ``cpu_ns`` (processor time of the whole process for the batch, including
background threads and the export). The workloads come from the named module.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time

from clocks import now_ns
from opentelemetry import trace

INSTRUMENTORS = {
    "genai-openai": "opentelemetry.instrumentation.genai.openai:OpenAIInstrumentor",
    "openinference": "openinference.instrumentation.openai:OpenAIInstrumentor",
    "genai-anthropic": "opentelemetry.instrumentation.genai.anthropic:AnthropicInstrumentor",
    "openinference-anthropic": "openinference.instrumentation.anthropic:AnthropicInstrumentor",
    "otel-google-genai": "opentelemetry.instrumentation.google_genai:GoogleGenAiSdkInstrumentor",
    "openinference-google-genai": "openinference.instrumentation.google_genai:GoogleGenAIInstrumentor",
    "otel-botocore": "opentelemetry.instrumentation.botocore:BotocoreInstrumentor",
    "openinference-bedrock": "openinference.instrumentation.bedrock:BedrockInstrumentor",
}
"""Variant → instrumentor of another project."""


def set_up(variant: str) -> None:
    """Instrument this process. For ``playhead``, ``opentelemetry-instrument`` has already done so."""
    if variant in ("off", "control", "playhead"):
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    if variant not in INSTRUMENTORS:
        raise SystemExit(f"no such variant: {variant}")
    module, _, name = INSTRUMENTORS[variant].partition(":")
    getattr(importlib.import_module(module), name)().instrument()


def flush() -> None:
    """Wait for background work, so that it is counted and does not disturb later batches."""
    force_flush = getattr(trace.get_tracer_provider(), "force_flush", None)
    if force_flush is not None:
        force_flush(60_000)


def main(variant: str, module: str) -> None:
    """Serve until stdin ends."""
    set_up(variant)
    workloads = importlib.import_module(module)
    gpt = workloads.client()
    for function, repetitions, _ in workloads.WORKLOADS.values():
        function(gpt, max(1, repetitions // 3))
    flush()
    print("ready", flush=True)
    for line in sys.stdin:
        function, repetitions, _ = workloads.WORKLOADS[line.strip()]
        gc.collect()
        cpu, begin = time.process_time_ns(), now_ns()
        taken = function(gpt, repetitions)
        whole = now_ns() - begin
        flush()
        used = time.process_time_ns() - cpu
        print(json.dumps({"ns": taken, "whole_ns": whole, "cpu_ns": used}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
