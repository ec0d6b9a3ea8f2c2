"""Record calls of litellm: one call; the requests of the SDK that litellm uses are its attempts."""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.model_sdks.entry_point import (
    EntryPoint,
    ModelCall,
    ModelEndpoint,
)
from playhead_instrumentation.libraries.model_sdks.known_wire import prepare
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.tracing.calls import LogicalCall
from playhead_semconv.values import GenAiOperationName

NOWHERE: Final = ModelEndpoint("", "", 0)
"""litellm chooses the endpoint later."""

OPERATIONS: Final = {
    "completion": GenAiOperationName.CHAT,
    "text_completion": GenAiOperationName.TEXT_COMPLETION,
    "embedding": GenAiOperationName.EMBEDDINGS,
}
"""Function of the library → operation. The asynchronous twin has the prefix ``a``."""


class LitellmEntryPoint(EntryPoint):
    """The entry point of one of the functions."""

    def __init__(self, operation: str) -> None:
        super().__init__(self._read)
        self._operation = operation

    def _read(self, model: object = "", *_: Any, **__: Any) -> ModelCall:
        return ModelCall(self._operation, "", model if isinstance(model, str) else "", NOWHERE)

    def answered(self, call: LogicalCall, answer: Any) -> None:
        """See `EntryPoint.answered`. Some providers send the request when a stream is first read."""
        ask = getattr(answer, "make_call", None)
        if ask is None or getattr(answer, "completion_stream", None) is not None:
            call.returned()
            return
        within = self.within_async if inspect.iscoroutinefunction(ask) else self.within
        answer.make_call = functools.partial(within, call, ask)


def patch(main: ModuleType) -> None:
    """Patch the functions of the library. Raises `Unpatchable`."""
    required(main, "completion")
    prepare()
    for name, operation in OPERATIONS.items():
        entry_point = LitellmEntryPoint(operation)
        PATCHES.around_all(main, {name: entry_point.request, f"a{name}": entry_point.request_async})
