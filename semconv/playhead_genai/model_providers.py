"""Model providers: by the host that answers, else by what it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from playhead_semconv.values import GenAiProviderName as Provider

BY_HOST: Final = (
    ("api.openai.com", Provider.OPENAI),
    ("api.anthropic.com", Provider.ANTHROPIC),
    ("openai.azure.com", Provider.AZURE_AI_OPENAI),
    ("cognitiveservices.azure.com", Provider.AZURE_AI_OPENAI),
    ("inference.ai.azure.com", Provider.AZURE_AI_INFERENCE),
    ("models.ai.azure.com", Provider.AZURE_AI_INFERENCE),
    ("services.ai.azure.com", Provider.AZURE_AI_INFERENCE),
    ("generativelanguage.googleapis.com", Provider.GCP_GEMINI),
    ("aiplatform.googleapis.com", Provider.GCP_VERTEX_AI),
    ("amazonaws.com", Provider.AWS_BEDROCK),
    ("api.aws", Provider.AWS_BEDROCK),
    ("cohere.com", Provider.COHERE),
    ("cohere.ai", Provider.COHERE),
    ("deepseek.com", Provider.DEEPSEEK),
    ("groq.com", Provider.GROQ),
    ("ml.cloud.ibm.com", Provider.IBM_WATSONX_AI),
    ("mistral.ai", Provider.MISTRAL_AI),
    ("moonshot.ai", Provider.MOONSHOT_AI),
    ("moonshot.cn", Provider.MOONSHOT_AI),
    ("perplexity.ai", Provider.PERPLEXITY),
    ("x.ai", Provider.X_AI),
    ("openrouter.ai", "openrouter"),
    ("together.xyz", "together_ai"),
    ("together.ai", "together_ai"),
    ("fireworks.ai", "fireworks_ai"),
    ("cerebras.ai", "cerebras"),
    ("huggingface.co", "hugging_face"),
    ("huggingface.cloud", "hugging_face"),
    ("ollama.com", "ollama"),
    ("sambanova.ai", "sambanova"),
    ("novita.ai", "novita"),
    ("z.ai", "zai"),
    ("minimax.io", "minimax"),
    ("voyageai.com", "voyageai"),
)
"""Suffix of the host name → provider, more specific ones first.

The conventions have names for some providers; the others have names of the same form.
"""

_BY_HEADER: Final = (
    ("x-amzn-requestid", Provider.AWS_BEDROCK),
    ("apim-request-id", Provider.AZURE_AI_OPENAI),
    ("azureml-model-session", Provider.AZURE_AI_OPENAI),
    ("anthropic-organization-id", Provider.ANTHROPIC),
    ("x-groq-region", Provider.GROQ),
    ("x-ds-trace-id", Provider.DEEPSEEK),
    ("mistral-correlation-id", Provider.MISTRAL_AI),
    ("openai-version", Provider.OPENAI),
    ("openai-organization", Provider.OPENAI),
    ("openai-processing-ms", Provider.OPENAI),
)
"""Header that only one provider sends → provider; Azure passes on those of OpenAI."""

_BY_VALUE: Final = (
    ("system_fingerprint", "fp_ollama", "ollama"),
    ("id", "msg_bdrk_", Provider.AWS_BEDROCK),
    ("id", "msg_vrtx_", Provider.GCP_VERTEX_AI),
    ("model", "accounts/fireworks/", "fireworks_ai"),
)
"""Field of an answer, how its value begins, and the provider that writes it so."""


def provider_at(host: str) -> str:
    """Return the provider that answers at ``host``; empty if the host does not tell."""
    for ending, provider in BY_HOST:
        if host == ending or host.endswith(("." + ending, "-" + ending)):
            return provider
    return ""


def provider_of_response(headers: Iterable[tuple[str, str]], body: Mapping[str, Any]) -> str:
    """Return the provider that an answer shows by its headers or its body; empty if neither does."""
    names = {name.lower() for name, _ in headers}
    for name, provider in _BY_HEADER:
        if name in names:
            return provider
    if "x_groq" in body:
        return Provider.GROQ
    for name, start, provider in _BY_VALUE:
        value = body.get(name)
        if isinstance(value, str) and value.startswith(start):
            return provider
    return ""
