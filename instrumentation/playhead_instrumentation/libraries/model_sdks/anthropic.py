"""Record model calls of anthropic, beta messages included, in every form."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from playhead_instrumentation.libraries.model_sdks.stainless import Operation, StainlessEntryPoint
from playhead_instrumentation.patching.patches import PATCHES
from playhead_semconv.values import GenAiOperationName

OPERATIONS = (Operation("/v1/messages", GenAiOperationName.CHAT, "anthropic.messages"),)


def patch(base_client: ModuleType) -> None:
    """Patch the SDK."""
    StainlessEntryPoint(OPERATIONS).patch(base_client)
    silence_native_spans(base_client)


def silence_native_spans(base_client: ModuleType) -> None:
    """Switch off the SDK's own spans (2.x), which would duplicate ours.

    A client with a tracer provider of its own keeps them: somebody configured it on purpose.
    """
    owner: Any = getattr(base_client, "BaseClient", None)
    native = getattr(owner, "_tracer", None)
    if not isinstance(native, property) or native.fget is None:
        return
    tracer_of = native.fget

    def tracer(client: Any) -> Any:
        options = getattr(client, "_open_telemetry", None)
        if isinstance(options, dict) and options.get("tracer_provider") is not None:  # pyright: ignore[reportUnknownMemberType]
            return tracer_of(client)
        return None

    PATCHES.put(owner, "_tracer", property(tracer))
