"""Record model calls of google-genai to Gemini's API and Vertex, retries included."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.model_sdks import known_wire
from playhead_instrumentation.libraries.model_sdks.entry_point import EntryPoint, ModelCall, endpoint
from playhead_instrumentation.patching.patches import PATCHES, required


def describe_request(client: Any, http_request: Any, *_: Any, **__: Any) -> ModelCall | None:
    """Return the model call of a request; None if it is not one."""
    url = str(http_request.url)
    where = endpoint(url, "VertexClient" if client.vertexai else "Client")
    return known_wire.describe(http_request.method, url, http_request.data, where)


ENTRY_POINT: Final = EntryPoint(describe_request)


def patch(api_client: ModuleType) -> None:
    """Patch the methods around the retries. Raises `Unpatchable`."""
    client = required(api_client, "BaseApiClient")
    known_wire.prepare("gemini.generate_content")
    PATCHES.around_all(
        client, {"_request": ENTRY_POINT.request, "_async_request": ENTRY_POINT.request_async}
    )
