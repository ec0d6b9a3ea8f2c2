"""mistralai: requests of its SDK, retries included."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.clients import known_wire
from playhead_instrumentation.clients.funnel import Asked, Funnel
from playhead_instrumentation.clients.model_endpoint import endpoint
from playhead_instrumentation.runtime.patching import PATCHES, required


def asked(sdk: Any, hook_ctx: Any, request: Any, *_: Any, **__: Any) -> Asked | None:
    """Return what a request asks for."""
    url = str(request.url)
    return known_wire.asked(request.method, url, request.content, endpoint(url, ""))


FUNNEL: Final = Funnel(asked)


def patch(basesdk: ModuleType) -> None:
    """Patch the methods around the retries. Raises `Unpatchable`."""
    sdk = required(basesdk, "BaseSDK")
    known_wire.prepare("openai.chat")
    PATCHES.around_all(sdk, {"do_request": FUNNEL.request, "do_request_async": FUNNEL.request_async})
