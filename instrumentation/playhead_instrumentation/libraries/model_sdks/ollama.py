"""ollama: requests of its SDK; a stream asks when its first part is read."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.model_sdks import known_wire
from playhead_instrumentation.libraries.model_sdks.entry_point import Asked, Funnel
from playhead_instrumentation.libraries.model_sdks.model_endpoint import ModelEndpoints
from playhead_instrumentation.patching.patches import PATCHES, required

_ENDPOINTS: Final = ModelEndpoints()


def asked(client: Any, kind: Any, method: str, url: str, *, json: Any = None, **_: Any) -> Asked | None:
    """Return what a request asks for."""
    return known_wire.asked(method, url, json, _ENDPOINTS.of(client._client, url))


FUNNEL: Final = Funnel(asked)


def patch(client: ModuleType) -> None:
    """Patch the methods that every request goes through. Raises `Unpatchable`."""
    sync, asynchronous = required(client, "Client"), required(client, "AsyncClient")
    known_wire.prepare("ollama.chat")
    PATCHES.around(sync, "_request", request)
    PATCHES.around(asynchronous, "_request", request_async)


def request(following: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call ``following`` with a span around it, or around the first step of its stream."""
    if kwargs.get("stream"):
        return FUNNEL.parts(following(*args, **kwargs), *args, **kwargs)
    return FUNNEL.request(following, *args, **kwargs)


async def request_async(following: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """As `request`, for the asynchronous client."""
    if kwargs.get("stream"):
        return FUNNEL.parts_async(await following(*args, **kwargs), *args, **kwargs)
    return await FUNNEL.request_async(following, *args, **kwargs)
