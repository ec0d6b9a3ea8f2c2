"""Record model calls of huggingface_hub's inference clients, to any provider that they know."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.model_sdks import known_wire
from playhead_instrumentation.libraries.model_sdks.entry_point import EntryPoint, ModelCall, endpoint
from playhead_instrumentation.patching.patches import PATCHES, required


def describe_request(client: Any, request_parameters: Any, *_: Any, **__: Any) -> ModelCall | None:
    """Return the model call of a request; None if it is not one."""
    url = str(request_parameters.url)
    return known_wire.describe("POST", url, request_parameters.json, endpoint(url, ""))


ENTRY_POINT: Final = EntryPoint(describe_request)


def patch(client: ModuleType) -> None:
    """Patch the method of the client that every request goes through. Raises `Unpatchable`."""
    _patch(required(client, "InferenceClient"), ENTRY_POINT.request)


def patch_async(client: ModuleType) -> None:
    """The same for the asynchronous client."""
    _patch(required(client, "AsyncInferenceClient"), ENTRY_POINT.request_async)


def _patch(client: Any, layer: Any) -> None:
    known_wire.prepare("openai.chat")
    PATCHES.around(client, "_inner_post", layer)
