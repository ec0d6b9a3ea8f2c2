"""openai: chat completions, responses and embeddings, in every form that goes through the funnel."""

from __future__ import annotations

from playhead_instrumentation.clients.funnel import Funnel, Operation
from playhead_instrumentation.patches import Patches
from playhead_instrumentation.spans.calls import Calls
from playhead_semconv.values import GenAiOperationName, GenAiProviderName

OPERATIONS = (
    Operation("/chat/completions", GenAiOperationName.CHAT, "openai.chat"),
    Operation("/responses", GenAiOperationName.CHAT, "openai.responses"),
    Operation("/embeddings", GenAiOperationName.EMBEDDINGS, "openai.embeddings"),
)


def watch(patches: Patches, calls: Calls) -> None:
    """Patch the SDK when it is imported."""
    funnel = Funnel(GenAiProviderName.OPENAI, OPERATIONS, calls)
    patches.when_imported("openai._base_client", "openai", funnel.patch)
