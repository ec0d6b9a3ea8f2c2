"""The one method of an SDK that every call goes through, retries included.

This is ``_base_client.SyncAPIClient.request`` and its async twin, in every SDK of the Stainless family.
Little is done on the way in and out: a span is started, and handed over when the call is over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from opentelemetry import context as otel_context

from playhead_instrumentation.clients.model_endpoint import ModelEndpoints
from playhead_instrumentation.runtime.patching import PATCHES, required
from playhead_instrumentation.spans.attempts import current_call
from playhead_instrumentation.spans.calls import current_calls
from playhead_instrumentation.spans.logical_call import LogicalCall

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Operation:
    """What an endpoint of the API does."""

    path: str
    """End of the path of its URL."""
    name: str
    """``gen_ai.operation.name``."""
    wire: str
    """Dialect of its bodies, as `playhead_semconv.wire` names it."""


class Funnel:
    """Starts and ends the logical calls of one SDK."""

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self._operations = operations
        self._endpoints: Final = ModelEndpoints()

    def operation_of(self, method: str, url: str) -> Operation | None:
        """Return the operation of a request to ``url``; None: it has no span of its own."""
        if method.lower() != "post":
            return None
        path = url.partition("?")[0].rstrip("/")
        for operation in self._operations:
            if path.endswith(operation.path):
                return operation
        return None

    def begin(self, client: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LogicalCall | None:
        """Begin the call ``request(*args, **kwargs)``; None when it has no span. Never raises."""
        calls = current_calls()
        if calls is None:
            return None
        try:
            options = kwargs["options"] if "options" in kwargs else args[1]
            url = str(options.url)
            operation = self.operation_of(options.method, url)
            if operation is None:
                return None
            body = options.json_data
            model = body.get("model") if isinstance(body, dict) else None  # pyright: ignore[reportUnknownVariableType]
            return calls.begin(
                operation.name,
                operation.wire,
                model if isinstance(model, str) else "",
                self._endpoints.of(client, url),
            )
        except Exception:
            log.debug("playhead could not begin a call", exc_info=True)
            return None

    def patch(self, base_client: ModuleType) -> None:
        """Patch the funnel of an SDK. Raises `Unpatchable` when it has none."""
        sync, asynchronous = (
            required(base_client, "SyncAPIClient"),
            required(base_client, "AsyncAPIClient"),
        )
        if (calls := current_calls()) is not None:
            calls.prepare()  # here, not in the first call
        PATCHES.around(sync, "request", self.request)
        PATCHES.around(asynchronous, "request", self.request_async)

    def request(self, request: Callable[..., Any], client: Any, *args: Any, **kwargs: Any) -> Any:
        """Call ``request`` with a span around it."""
        return within(self.begin(client, args, kwargs), request, client, *args, **kwargs)

    async def request_async(
        self, request: Callable[..., Any], client: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """As `request`, for a coroutine function."""
        call = self.begin(client, args, kwargs)
        if call is None:
            return await request(client, *args, **kwargs)
        outer = otel_context.attach(call.context)
        observer = current_call.set(call)
        try:
            result = await request(client, *args, **kwargs)
        except BaseException as error:
            call.raised(error)
            raise
        finally:
            current_call.reset(observer)
            otel_context.detach(outer)
        call.returned()
        return result


def within(call: LogicalCall | None, request: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return ``request(*args, **kwargs)``, whose attempts belong to ``call``; None: to no call."""
    if call is None:
        return request(*args, **kwargs)
    outer = otel_context.attach(call.context)
    observer = current_call.set(call)
    try:
        result = request(*args, **kwargs)
    except BaseException as error:
        call.raised(error)
        raise
    finally:
        current_call.reset(observer)
        otel_context.detach(outer)
    call.returned()
    return result
