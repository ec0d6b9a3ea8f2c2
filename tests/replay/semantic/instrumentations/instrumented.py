"""Runs a script with an instrumentation of others, which sends its spans by OTLP: ``NAME SCRIPT``."""

import runpy
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

name, script = sys.argv[1:]
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
if name == "opentelemetry":
    from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument()
    AnthropicInstrumentor().instrument()
elif name == "openllmetry":
    from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument()
    AnthropicInstrumentor().instrument()
elif name == "openinference":
    from openinference.instrumentation.anthropic import AnthropicInstrumentor
    from openinference.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument()
    AnthropicInstrumentor().instrument()
elif name == "langfuse":
    import langfuse.openai  # patches the SDK

    langfuse.Langfuse(
        public_key="pk", secret_key="sk", host="http://127.0.0.1:9", tracer_provider=provider, timeout=1
    )
elif name == "langsmith":
    import openai
    from langsmith.wrappers import wrap_openai

    for kind in ("OpenAI", "AsyncOpenAI"):
        made = getattr(openai, kind)
        setattr(openai, kind, lambda *words, made=made, **more: wrap_openai(made(*words, **more)))
else:
    from pydantic_ai import Agent

    Agent.instrument_all()
sys.argv = [script]
with trace.get_tracer("program").start_as_current_span(script):
    runpy.run_path(script, run_name="__main__")
if name == "langsmith":
    from langsmith.run_trees import get_cached_client

    get_cached_client().flush()
provider.shutdown()
