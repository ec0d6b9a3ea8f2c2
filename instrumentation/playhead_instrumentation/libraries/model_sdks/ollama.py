"""Record model calls of ollama. A stream sends its request when its first part is read."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.model_sdks import known_wire
from playhead_instrumentation.libraries.model_sdks.entry_point import (
    EntryPoint,
    ModelCall,
    ModelEndpoints,
)
from playhead_instrumentation.patching.patches import PATCHES, required

_ENDPOINTS: Final = ModelEndpoints()


def describe_request(
    client: Any, kind: Any, method: str, url: str, *, json: Any = None, **_: Any
) -> ModelCall | None:
    """Return the model call of a request; None if it is not one."""
    return known_wire.describe(method, url, json, _ENDPOINTS.of(client._client, url))


ENTRY_POINT: Final = EntryPoint(describe_request)


def patch(client: ModuleType) -> None:
    """Patch the methods that every request goes through. Raises `Unpatchable`."""
    sync, asynchronous = required(client, "Client"), required(client, "AsyncClient")
    known_wire.prepare("ollama.chat")
    PATCHES.around(sync, "_request", request)
    PATCHES.around(asynchronous, "_request", request_async)


def request(following: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call ``following`` with a span around it, or around the first step of its stream."""
    if kwargs.get("stream"):
        return ENTRY_POINT.parts(following(*args, **kwargs), *args, **kwargs)
    return ENTRY_POINT.request(following, *args, **kwargs)


async def request_async(following: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """As `request`, for the asynchronous client."""
    if kwargs.get("stream"):
        return ENTRY_POINT.parts_async(await following(*args, **kwargs), *args, **kwargs)
    return await ENTRY_POINT.request_async(following, *args, **kwargs)
