"""Links checkpoints of a framework to the current span and to a position in a thread."""

from __future__ import annotations

import sys
import time
from functools import lru_cache
from typing import Any

from blake3 import blake3

from playhead_checkpoint.store.protocol import Checkpoint, CheckpointStore, Lineage
from playhead_checkpoint.tree.types import Types


class LinkedCheckpoints:
    """Stores the checkpoints of a framework, each linked to the current span."""

    def __init__(self, store: CheckpointStore, label: str) -> None:
        self._store = store
        self._label = label

    def put(
        self,
        state: Any,
        thread: str,
        name: str,
        parent: str = "",
        *labels: str,
        types: Types | None = None,
        replace: bool = False,
    ) -> Checkpoint:
        """Put a state under a name into a thread, linked to the current span.

        ``parent``: name of the checkpoint before it. Else as `CheckpointStore.put`.
        """
        run, span = current_span()
        above = id_in_thread(thread, parent) if parent else b""
        id = id_in_thread(thread, name)
        labels = (self._label, *labels)
        lineage = Lineage(run, span, "framework", above, time.time_ns(), labels, id, thread, name)
        return self._store.put(state, lineage, types, replace=replace)


@lru_cache(maxsize=128)  # the parent of a checkpoint was put before it
def id_in_thread(thread: str, name: str) -> bytes:
    """Return the id of the checkpoint with this name, which is the same in every process."""
    return blake3(f"{len(thread)}:{thread}{name}".encode()).digest(16)


def current_span() -> tuple[bytes, bytes]:
    """Return ids of the current trace and span, or empty. A recording patches this function.

    OpenTelemetry is not imported for it.
    """
    trace = sys.modules.get("opentelemetry.trace")
    context = trace.get_current_span().get_span_context() if trace else None
    if context is None or not context.is_valid:
        return b"", b""
    return context.trace_id.to_bytes(16, "big"), context.span_id.to_bytes(8, "big")
