"""Model providers by the host that answers."""

from __future__ import annotations

from typing import Final

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
)
"""Suffix of the host name → provider, more specific ones first."""


def provider_at(host: str, otherwise: str) -> str:
    """Return the provider that answers at ``host``; ``otherwise`` where the host does not tell."""
    for ending, provider in BY_HOST:
        if host == ending or host.endswith(("." + ending, "-" + ending)):
            return provider
    return otherwise
