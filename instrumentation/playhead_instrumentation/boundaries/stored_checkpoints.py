"""Checkpoints that savers and sessions of frameworks put into a store: where on the tape that was."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead_instrumentation.driver.call import ids_of
from playhead_instrumentation.runtime import lanes
from playhead_instrumentation.runtime.patching import PATCHES, required
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv import events as e

SPAN = "checkpoints/span"
"""Kind of the read of run and span: a replay, which has others, stores the same bytes again."""


def patch(linking: ModuleType) -> None:
    """Patch `playhead_checkpoint.store.linking`."""
    PATCHES.around(required(linking, "LinkedCheckpoints"), "put", _put)
    PATCHES.around(linking, "current_span", _span)


def _span(original: Callable[[], tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Layer of what says which span is current: where the program has none, it is the run's."""
    session = current()
    if session is None:
        return original()

    def here() -> tuple[bytes, bytes]:
        context = session.here().get_span_context()
        return ids_of(context if context.is_valid else None)

    run, span = session.driver.reads.read(SPAN, here)
    return run, span


def _put(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Layer of the method with which frameworks put checkpoints."""
    stored = original(*args, **kwargs)
    session, lane = current(), lanes.current()
    if session is not None and lane is not lanes.UNRECORDED and lane is not lanes.GC:
        _tell(session, stored)
    return stored


def _tell(session: Session, stored: Any) -> None:
    lineage, text = stored.lineage, session.redactor.text
    attributes: dict[str, Any] = {
        a.PLAYHEAD_CHECKPOINT_KIND: lineage.kind,
        a.PLAYHEAD_CHECKPOINT_LABEL: lineage.labels[0],
        a.PLAYHEAD_CHECKPOINT_ID: stored.id.hex(),
        a.PLAYHEAD_CHECKPOINT_THREAD: text(lineage.thread),
        a.PLAYHEAD_CHECKPOINT_NAME: text(lineage.name),
        a.PLAYHEAD_CHECKPOINT_SIZE_BYTES: stored.size_bytes,
        a.PLAYHEAD_CHECKPOINT_DIGEST: stored.digest.hex(),
    }
    if lineage.parent:
        attributes[a.PLAYHEAD_CHECKPOINT_PARENT] = lineage.parent.hex()
    session.tell(e.PLAYHEAD_CHECKPOINT, attributes)
