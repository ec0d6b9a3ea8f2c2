"""google-genai: requests of Gemini's API and of Vertex, retries included."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.model_sdks import known_wire
from playhead_instrumentation.libraries.model_sdks.entry_point import Asked, Funnel
from playhead_instrumentation.libraries.model_sdks.model_endpoint import endpoint
from playhead_instrumentation.patching.patches import PATCHES, required


def asked(client: Any, http_request: Any, *_: Any, **__: Any) -> Asked | None:
    """Return what a request asks for."""
    url = str(http_request.url)
    where = endpoint(url, "VertexClient" if client.vertexai else "Client")
    return known_wire.asked(http_request.method, url, http_request.data, where)


FUNNEL: Final = Funnel(asked)


def patch(api_client: ModuleType) -> None:
    """Patch the methods around the retries. Raises `Unpatchable`."""
    client = required(api_client, "BaseApiClient")
    known_wire.prepare("gemini.generate_content")
    PATCHES.around_all(client, {"_request": FUNNEL.request, "_async_request": FUNNEL.request_async})
