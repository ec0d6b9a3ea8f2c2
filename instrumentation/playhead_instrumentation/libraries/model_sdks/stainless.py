"""SDKs of the Stainless family: ``_base_client.SyncAPIClient.request`` and its asynchronous twin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, cast

from playhead_instrumentation.libraries.model_sdks import known_wire
from playhead_instrumentation.libraries.model_sdks.entry_point import (
    EntryPoint,
    ModelCall,
    ModelEndpoints,
)
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.tracing.calls import current_calls


@dataclass(frozen=True, slots=True)
class Operation:
    """Operation of an endpoint of the API. Other endpoints are recognized by their wires."""

    path: str
    """End of the path of its URL."""
    name: str
    """``gen_ai.operation.name``."""
    wire: str
    """Dialect of its bodies, as `playhead_genai.providers` names it."""


class StainlessEntryPoint(EntryPoint):
    """The entry point of one SDK of the family."""

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        super().__init__(self._read)
        self._operations = operations
        self._endpoints: Final = ModelEndpoints()

    def operation_of(self, method: str, url: str) -> Operation | None:
        """Return the operation of a request to ``url``; None if the URL alone does not identify one."""
        if method.lower() != "post":
            return None
        path = url.partition("?")[0].rstrip("/")
        for operation in self._operations:
            if path.endswith(operation.path):
                return operation
        return None

    def _read(self, client: Any, cast_to: Any = None, options: Any = None, **_: Any) -> ModelCall | None:
        url = str(options.url)
        operation = self.operation_of(options.method, url)
        where = self._endpoints.of(client, url)
        if operation is None:
            return known_wire.describe(options.method, url, fields_of(options), where)
        body = options.json_data
        model = body.get("model") if isinstance(body, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return ModelCall(
            operation.name,
            operation.wire,
            model if isinstance(model, str) else "",
            where,
        )

    def patch(self, base_client: ModuleType) -> None:
        """Patch the entry point of an SDK. Raises `Unpatchable` when it has none."""
        sync, asynchronous = (
            required(base_client, "SyncAPIClient"),
            required(base_client, "AsyncAPIClient"),
        )
        if (calls := current_calls()) is not None:
            calls.prepare()  # here, not in the first call
        PATCHES.around(sync, "request", self.request)
        PATCHES.around(asynchronous, "request", self.request_async)


def fields_of(options: Any) -> Mapping[str, Any]:
    """Return the fields of a request that is not built yet; for files, only their names."""
    body: Any = options.json_data
    fields = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    files: Any = getattr(options, "files", None)
    if not files:
        return fields
    named = cast("Iterable[tuple[str, Any]]", files.items() if isinstance(files, Mapping) else files)
    return fields | {name: {} for name, _ in named}
