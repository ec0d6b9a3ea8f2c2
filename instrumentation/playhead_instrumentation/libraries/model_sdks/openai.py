"""Record model calls of openai, in every form.

The SDKs of Groq and Together have the same client and the same paths.
"""

from __future__ import annotations

from types import ModuleType

from playhead_instrumentation.libraries.model_sdks.stainless import Operation, StainlessEntryPoint
from playhead_semconv.values import GenAiOperationName

OPERATIONS = (
    Operation("/chat/completions", GenAiOperationName.CHAT, "openai.chat"),
    Operation("/responses", GenAiOperationName.CHAT, "openai.responses"),
    Operation("/responses/compact", GenAiOperationName.CHAT, "openai.compaction"),
    Operation("/embeddings", GenAiOperationName.EMBEDDINGS, "openai.embeddings"),
    Operation("/images/generations", GenAiOperationName.GENERATE_CONTENT, "openai.images"),
    Operation("/images/edits", GenAiOperationName.GENERATE_CONTENT, "openai.images"),
    Operation("/images/variations", GenAiOperationName.GENERATE_CONTENT, "openai.images"),
    Operation("/audio/speech", GenAiOperationName.GENERATE_CONTENT, "openai.speech"),
    Operation("/audio/transcriptions", GenAiOperationName.GENERATE_CONTENT, "openai.transcription"),
    Operation("/audio/translations", GenAiOperationName.GENERATE_CONTENT, "openai.transcription"),
    Operation("/moderations", "moderation", "openai.moderation"),
)


def patch(base_client: ModuleType) -> None:
    """Patch the SDK."""
    StainlessEntryPoint(OPERATIONS).patch(base_client)
