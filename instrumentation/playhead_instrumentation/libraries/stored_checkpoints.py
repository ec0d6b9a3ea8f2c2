"""Record what a program puts into stores of checkpoints: the location, and a copy of the state.

A copy holds only what no earlier copy of the run holds, without credentials. So the state can be read,
compared and put into a store again even if the store itself is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead_core.facts import Content
from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.recorder.call import ids_of
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv import events as e

log = Log(__name__)

SPAN = "checkpoints/span"
"""Kind of the read of run and span: a replay, which has others, stores the same bytes again."""


class _Copies:
    """The copies of the session that records now."""

    def __init__(self, make: Callable[[Any, int], Any]) -> None:
        self._make = make
        self._session: Session | None = None
        self._copier: Any = None

    def told(self, original: Callable[..., None], load: Any, stored: Any, *given: Any) -> None:
        """Layer of what is called after each put."""
        original(load, stored, *given)
        session = _recording()
        if session is not None:
            copy = self._made(session, lambda run: self._copier.copy(run, load, stored, *given))
            session.tell(e.PLAYHEAD_CHECKPOINT, _said(session, stored), copy)

    def noted(
        self, original: Callable[..., None], load: Any, id: bytes, *given: Any, replace: bool
    ) -> None:
        """Layer of what is called after something was said about a checkpoint."""
        original(load, id, *given, replace=replace)
        session = _recording()
        if session is not None:
            copy = self._made(
                session, lambda run: self._copier.copy_notes(run, load, *given, replace=replace)
            )
            if copy is not None:
                about = {a.PLAYHEAD_CHECKPOINT_ID: id.hex()}
                session.tell(e.PLAYHEAD_CHECKPOINT_NOTES, about, copy)

    def _made(self, session: Session, make: Callable[[bytes], bytes | None]) -> Content | None:
        """A copy; None if there is no room for it, if it cannot be made, and in a replay."""
        if not session.keeps_copies:
            return None
        if self._session is not session:
            most_bytes = session.settings.checkpoint_copies_bytes
            self._session, self._copier = session, self._make(session.redactor, most_bytes)
        context = session.here().get_span_context()
        run, _ = ids_of(context if context.is_valid else None)
        try:
            with lanes.Shadow():  # look-ups in the store are not part of the program
                copy = make(session.sink.instance + run)
        except Exception:
            log.debug("playhead could not copy a checkpoint", exc_info=True)
            return None
        return None if copy is None else Content.of(copy)


def patch(telling: ModuleType) -> None:
    """Patch `playhead_checkpoint.copies.reporting`."""
    copies = _Copies(required(telling, "copier"))
    PATCHES.around_all(telling, {"report_state": copies.told, "report_notes": copies.noted})


def patch_linking(linking: ModuleType) -> None:
    """Patch `playhead_checkpoint.store.linking`."""
    PATCHES.around(linking, "current_span", _span)


def _span(original: Callable[[], tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Return the current span; if the program has none, the root span of the run."""
    session = current()
    if session is None:
        return original()

    def here() -> tuple[bytes, bytes]:
        context = session.here().get_span_context()
        return ids_of(context if context.is_valid else None)

    run, span = session.driver.reads.read(SPAN, here)
    return run, span


def _recording() -> Session | None:
    lane = lanes.current()
    return None if lane is lanes.UNRECORDED or lane is lanes.GC else current()


def _said(session: Session, stored: Any) -> dict[str, Any]:
    """What the fact says of a stored checkpoint."""
    lineage, text = stored.lineage, session.redactor.text
    attributes: dict[str, Any] = {
        a.PLAYHEAD_CHECKPOINT_KIND: lineage.kind,
        a.PLAYHEAD_CHECKPOINT_ID: stored.id.hex(),
        a.PLAYHEAD_CHECKPOINT_THREAD: text(lineage.thread),
        a.PLAYHEAD_CHECKPOINT_NAME: text(lineage.name),
        a.PLAYHEAD_CHECKPOINT_SIZE_BYTES: stored.size_bytes,
        a.PLAYHEAD_CHECKPOINT_DIGEST: stored.digest.hex(),
    }
    if lineage.labels:
        attributes[a.PLAYHEAD_CHECKPOINT_LABEL] = text(lineage.labels[0])
    if lineage.parent:
        attributes[a.PLAYHEAD_CHECKPOINT_PARENT] = lineage.parent.hex()
    return attributes
