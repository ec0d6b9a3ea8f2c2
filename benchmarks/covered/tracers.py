"""The instrumentations that are compared: which of their classes is for which SDK."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module

CONTENT = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_AND_EVENT",
    "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT": "true",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "100000",
    "TRACELOOP_TRACE_CONTENT": "true",
    "OTEL_TRACES_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}
"""Everything that makes any of them keep content."""


@dataclass(frozen=True)
class Tracer:
    """An instrumentation; ``places``: module and class by SDK."""

    name: str
    places: dict[str, str]
    environment: dict[str, str] | None = None

    def instrument(self, sdk: str) -> None:
        """Instrument an SDK in this process."""
        module, _, kind = self.places[sdk].partition(":")
        getattr(import_module(module), kind)().instrument()

    def settle(self) -> None:
        """Wait until it has told of all calls."""


class Own(Tracer):
    """What an SDK tells of itself: xai-sdk without being asked, litellm by its callback."""

    def instrument(self, sdk: str) -> None:
        """Instrument an SDK in this process."""
        if sdk == "litellm":
            import litellm
            from litellm.integrations.opentelemetry import OpenTelemetry, OpenTelemetryConfig

            told = OpenTelemetryConfig(enable_events=True, capture_message_content="SPAN_AND_EVENT")
            litellm.callbacks = [OpenTelemetry(told)]

    def settle(self) -> None:
        """Wait for litellm's thread."""
        if "litellm" in sys.modules:
            from litellm.utils import executor

            executor.shutdown(wait=True)


class Logfire(Tracer):
    """Logfire, on the providers of this process."""

    def instrument(self, sdk: str) -> None:
        """Instrument an SDK in this process."""
        import logfire  # pyright: ignore[reportMissingImports]

        logfire.configure(send_to_logfire=False, console=False)
        getattr(logfire, self.places[sdk])()


class OpenLit(Tracer):
    """OpenLIT, on the providers of this process."""

    def instrument(self, sdk: str) -> None:
        """Instrument an SDK in this process."""
        import openlit  # pyright: ignore[reportMissingImports]

        openlit.init(disable_metrics=True, capture_message_content=True)


OTEL = "opentelemetry.instrumentation"
INFERENCE = "openinference.instrumentation"
TRACERS = {
    one.name: one
    for one in (
        Tracer("playhead", dict.fromkeys(
            (
                "openai", "anthropic", "google-genai", "bedrock", "mistral", "cohere", "groq", "ollama",
                "together", "huggingface_hub", "litellm", "xai",
            ), ""
        )),
        Own("own", {"litellm": "", "xai": ""}, {"USE_OTEL_LITELLM_REQUEST_SPAN": "true"}),
        Tracer("otel-contrib", {
            "google-genai": f"{OTEL}.google_genai:GoogleGenAiSdkInstrumentor",
            "bedrock": f"{OTEL}.botocore:BotocoreInstrumentor",
        }),
        Tracer("otel-v2", {"openai": f"{OTEL}.openai_v2:OpenAIInstrumentor"}),
        Tracer("otel-genai", {
            "openai": f"{OTEL}.genai.openai:OpenAIInstrumentor",
            "anthropic": f"{OTEL}.genai.anthropic:AnthropicInstrumentor",
        }),
        Tracer("openinference", {
            "openai": f"{INFERENCE}.openai:OpenAIInstrumentor",
            "anthropic": f"{INFERENCE}.anthropic:AnthropicInstrumentor",
            "google-genai": f"{INFERENCE}.google_genai:GoogleGenAIInstrumentor",
            "bedrock": f"{INFERENCE}.bedrock:BedrockInstrumentor",
            "mistral": f"{INFERENCE}.mistralai:MistralAIInstrumentor",
            "cohere": f"{INFERENCE}.cohere:CohereInstrumentor",
            "groq": f"{INFERENCE}.groq:GroqInstrumentor",
            "ollama": f"{INFERENCE}.ollama:OllamaInstrumentor",
            "together": f"{INFERENCE}.together:TogetherInstrumentor",
            "litellm": f"{INFERENCE}.litellm:LiteLLMInstrumentor",
        }),
        Tracer("traceloop", {
            "openai": f"{OTEL}.openai:OpenAIInstrumentor",
            "anthropic": f"{OTEL}.anthropic:AnthropicInstrumentor",
            "google-genai": f"{OTEL}.google_generativeai:GoogleGenerativeAiInstrumentor",
            "bedrock": f"{OTEL}.bedrock:BedrockInstrumentor",
            "mistral": f"{OTEL}.mistralai:MistralAiInstrumentor",
            "cohere": f"{OTEL}.cohere:CohereInstrumentor",
            "groq": f"{OTEL}.groq:GroqInstrumentor",
            "ollama": f"{OTEL}.ollama:OllamaInstrumentor",
            "together": f"{OTEL}.together:TogetherAiInstrumentor",
            "litellm": f"{OTEL}.litellm:LiteLLMInstrumentor",
        }),
        OpenLit("openlit", dict.fromkeys(
            (
                "openai", "anthropic", "google-genai", "bedrock", "mistral", "cohere", "groq", "ollama",
                "together", "litellm",
            ), ""
        ), {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}),
        Logfire("logfire", {
            "openai": "instrument_openai",
            "anthropic": "instrument_anthropic",
            "google-genai": "instrument_google_genai",
            "litellm": "instrument_litellm",
        }),
    )
}  # fmt: skip
"""By name, which is that of its environment, too."""
