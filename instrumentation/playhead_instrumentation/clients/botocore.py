"""botocore: calls of models on Bedrock, retries included."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final
from urllib.parse import quote

from playhead_instrumentation.clients.funnel import within
from playhead_instrumentation.clients.model_endpoint import endpoint
from playhead_instrumentation.runtime.patching import PATCHES, required
from playhead_instrumentation.spans.calls import current_calls
from playhead_instrumentation.spans.logical_call import LogicalCall
from playhead_semconv.wire import DIALECTS, recognised

log = logging.getLogger(__name__)

ACTIONS: Final = {
    "Converse": "converse",
    "ConverseStream": "converse-stream",
    "InvokeModel": "invoke",
    "InvokeModelWithResponseStream": "invoke-with-response-stream",
}
"""Operation of the service that calls models → the end of its path."""


def patch(client: ModuleType) -> None:
    """Patch the method that every call of a service goes through. Raises `Unpatchable`."""
    base = required(client, "BaseClient")
    if (calls := current_calls()) is not None:
        calls.prepare()  # here, not in the first call
    PATCHES.around(base, "_make_api_call", make_api_call)


def make_api_call(request: Callable[..., Any], client: Any, *args: Any, **kwargs: Any) -> Any:
    """Call ``request`` with a span around it, if it calls a model."""
    return within(begin(client, args), request, client, *args, **kwargs)


def begin(client: Any, args: tuple[Any, ...]) -> LogicalCall | None:
    """Begin the call of an operation with its parameters; None when it has no span. Never raises."""
    calls = current_calls()
    action = ACTIONS.get(args[0]) if calls is not None and len(args) == 2 else None
    if calls is None or action is None:
        return None
    try:
        if client.meta.service_model.service_name != "bedrock-runtime":
            return None
        asked: Mapping[str, Any] = args[1]
        model = str(asked["modelId"])
        wire = recognised("POST", f"/model/{quote(model, safe='')}/{action}", _body(asked.get("body")))
        if wire is None:
            return None
        where = endpoint(client.meta.endpoint_url, type(client).__name__)
        return calls.begin(DIALECTS[wire].operation, wire, model, where)
    except Exception:
        log.debug("playhead could not begin a call", exc_info=True)
        return None


def _body(body: Any) -> bytes:
    """Return the body of an invocation: text or bytes; what is read from a file is not known here."""
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, bytes | bytearray) else b""
