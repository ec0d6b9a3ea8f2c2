"""cohere: requests and streams of its SDK, retries included."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.model_sdks import known_wire
from playhead_instrumentation.libraries.model_sdks.entry_point import Asked, Funnel
from playhead_instrumentation.libraries.model_sdks.model_endpoint import endpoint
from playhead_instrumentation.patching.patches import PATCHES, required


def asked(
    client: Any,
    path: str | None = None,
    *,
    method: str = "",
    base_url: str | None = None,
    json: Any = None,
    **_: Any,
) -> Asked | None:
    """Return what a request asks for."""
    base = str(client.get_base_url(base_url))
    return known_wire.asked(method, f"/{path or ''}", json, endpoint(base, type(client).__name__))


FUNNEL: Final = Funnel(asked)


def patch(http_client: ModuleType) -> None:
    """Patch the methods that every request goes through. Raises `Unpatchable`."""
    sync, asynchronous = required(http_client, "HttpClient"), required(http_client, "AsyncHttpClient")
    known_wire.prepare("cohere.chat")
    PATCHES.around_all(sync, {"request": FUNNEL.request, "stream": FUNNEL.context})
    PATCHES.around_all(asynchronous, {"request": FUNNEL.request_async, "stream": FUNNEL.context_async})
