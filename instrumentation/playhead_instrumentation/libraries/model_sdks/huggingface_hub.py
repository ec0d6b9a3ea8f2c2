"""huggingface_hub: requests of its inference clients, to any of the providers that they know."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.model_sdks import known_wire
from playhead_instrumentation.libraries.model_sdks.entry_point import Asked, Funnel
from playhead_instrumentation.libraries.model_sdks.model_endpoint import endpoint
from playhead_instrumentation.patching.patches import PATCHES, required


def asked(client: Any, request_parameters: Any, *_: Any, **__: Any) -> Asked | None:
    """Return what a request asks for."""
    url = str(request_parameters.url)
    return known_wire.asked("POST", url, request_parameters.json, endpoint(url, ""))


FUNNEL: Final = Funnel(asked)


def patch(client: ModuleType) -> None:
    """Patch the method of the client that every request goes through. Raises `Unpatchable`."""
    _patch(required(client, "InferenceClient"), FUNNEL.request)


def patch_async(client: ModuleType) -> None:
    """The same for the asynchronous client."""
    _patch(required(client, "AsyncInferenceClient"), FUNNEL.request_async)


def _patch(client: Any, layer: Any) -> None:
    known_wire.prepare("openai.chat")
    PATCHES.around(client, "_inner_post", layer)
