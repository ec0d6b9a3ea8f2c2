"""Record model calls of cohere: requests and streams, retries included."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.model_sdks import known_wire
from playhead_instrumentation.libraries.model_sdks.entry_point import EntryPoint, ModelCall, endpoint
from playhead_instrumentation.patching.patches import PATCHES, required


def describe_request(
    client: Any,
    path: str | None = None,
    *,
    method: str = "",
    base_url: str | None = None,
    json: Any = None,
    **_: Any,
) -> ModelCall | None:
    """Return the model call of a request; None if it is not one."""
    base = str(client.get_base_url(base_url))
    return known_wire.describe(method, f"/{path or ''}", json, endpoint(base, type(client).__name__))


ENTRY_POINT: Final = EntryPoint(describe_request)


def patch(http_client: ModuleType) -> None:
    """Patch the methods that every request goes through. Raises `Unpatchable`."""
    sync, asynchronous = required(http_client, "HttpClient"), required(http_client, "AsyncHttpClient")
    known_wire.prepare("cohere.chat")
    PATCHES.around_all(sync, {"request": ENTRY_POINT.request, "stream": ENTRY_POINT.context})
    PATCHES.around_all(
        asynchronous, {"request": ENTRY_POINT.request_async, "stream": ENTRY_POINT.context_async}
    )
