"""openai: chat completions, responses and embeddings, in every form that goes through the funnel."""

from __future__ import annotations

from types import ModuleType

from playhead_instrumentation.clients.funnel import Funnel, Operation
from playhead_semconv.values import GenAiOperationName, GenAiProviderName

OPERATIONS = (
    Operation("/chat/completions", GenAiOperationName.CHAT, "openai.chat"),
    Operation("/responses", GenAiOperationName.CHAT, "openai.responses"),
    Operation("/embeddings", GenAiOperationName.EMBEDDINGS, "openai.embeddings"),
)


def patch(base_client: ModuleType) -> None:
    """Patch the SDK."""
    Funnel(GenAiProviderName.OPENAI, OPERATIONS).patch(base_client)
