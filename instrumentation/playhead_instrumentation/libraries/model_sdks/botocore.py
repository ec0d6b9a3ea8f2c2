"""Record model calls on Bedrock through botocore, retries included."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any, Final
from urllib.parse import quote

from playhead_instrumentation.libraries.model_sdks import known_wire
from playhead_instrumentation.libraries.model_sdks.entry_point import EntryPoint, ModelCall, endpoint
from playhead_instrumentation.patching.patches import PATCHES, required

ACTIONS: Final = {
    "Converse": "converse",
    "ConverseStream": "converse-stream",
    "InvokeModel": "invoke",
    "InvokeModelWithResponseStream": "invoke-with-response-stream",
}
"""Operation of the service that calls models → the end of its path."""


def describe_request(
    client: Any, operation_name: str, api_params: Mapping[str, Any], *_: Any, **__: Any
) -> ModelCall | None:
    """Return the model call of an operation; None if it is not one."""
    action = ACTIONS.get(operation_name)
    if action is None or client.meta.service_model.service_name != "bedrock-runtime":
        return None
    model, where = str(api_params["modelId"]), (client.meta.endpoint_url, type(client).__name__)
    body = api_params.get("body")
    if isinstance(body, str | bytes | bytearray):
        return known_wire.describe("POST", _path(model, action), body, endpoint(*where))
    return _by_path(model, action, *where)


@lru_cache(256)
def _by_path(model: str, action: str, url: str, client_class: str) -> ModelCall | None:
    """Return the call of a conversation, or of an invocation whose body is read from a file."""
    return known_wire.describe("POST", _path(model, action), {}, endpoint(url, client_class))


def _path(model: str, action: str) -> str:
    return f"/model/{quote(model, safe='')}/{action}"


ENTRY_POINT: Final = EntryPoint(describe_request)


def patch(client: ModuleType) -> None:
    """Patch the method that every call of a service goes through. Raises `Unpatchable`."""
    base = required(client, "BaseClient")
    known_wire.prepare("bedrock.converse")
    PATCHES.around(base, "_make_api_call", ENTRY_POINT.request)
