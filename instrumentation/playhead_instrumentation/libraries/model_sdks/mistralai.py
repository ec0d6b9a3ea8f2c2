"""Record model calls of mistralai, retries included."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.model_sdks import known_wire
from playhead_instrumentation.libraries.model_sdks.entry_point import EntryPoint, ModelCall, endpoint
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.tracing.attempts import current_call
from playhead_instrumentation.tracing.calls import LogicalCall


def describe_request(sdk: Any, hook_ctx: Any, request: Any, *_: Any, **__: Any) -> ModelCall | None:
    """Return the model call of a request; None if it is not one."""
    url = str(request.url)
    return known_wire.describe(request.method, url, request.content, endpoint(url, ""))


ENTRY_POINT: Final = EntryPoint(describe_request)


def patch(basesdk: ModuleType) -> None:
    """Patch the methods around the retries. Raises `Unpatchable`."""
    sdk = required(basesdk, "BaseSDK")
    known_wire.prepare("openai.chat")
    PATCHES.around_all(
        sdk, {"do_request": ENTRY_POINT.request, "do_request_async": ENTRY_POINT.request_async}
    )


def patch_tracing(hooks: ModuleType) -> None:
    """Switch off the SDK's own span if ours describes the call; 2.0 makes one by default."""
    if hasattr(hooks, "get_or_create_otel_tracer"):
        PATCHES.around(hooks, "get_or_create_otel_tracer", tracer)


def tracer(following: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return whether the SDK makes spans, and with which tracer.

    A client with a tracer provider of its own keeps them: somebody configured it on purpose.
    """
    enabled, native = following(*args, **kwargs)
    own = any(argument is not None for argument in (*args, *kwargs.values()))
    return enabled and (own or not isinstance(current_call.get(), LogicalCall)), native
