"""States: what a program reports about itself, to be viewed, compared, and edited in a fork."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from playhead_instrumentation.boundaries import values
from playhead_instrumentation.runtime.lanes import Shadow
from playhead_instrumentation.session.session import current

if TYPE_CHECKING:
    from playhead_semconv.rerun.plans import Edit

log = logging.getLogger(__name__)

T = TypeVar("T")


def state(value: T, /, *, name: str = "state") -> T:
    """Record ``value`` as the current state of the program, and return it.

    It is put on the tape as JSON, each content once, with the current span. An object of any class is
    recorded by its attributes; of what cannot be kept (open files, functions), only the class. A replay
    compares the states. A fork may edit one: then the edited value is returned, and a dict or a list is
    updated in place, too. ``name``: tells several states of a program apart. Without a recording this
    does nothing.
    """
    return reported(value, name)[0]


def reported(value: T, name: str, edits: Sequence[Edit] = ()) -> tuple[T, bool]:
    """As `state`; also whether a fork, or an operator with ``edits``, put another value in its place."""
    session = current()
    if session is None:
        return value, False
    try:
        with Shadow():  # code that an object runs to list its attributes is not part of the run
            told = values.written(value, stubs=[])
        changed = session.driver.states.said(name, told, session.here(), edits)
        if changed is None:
            return value, False
        with Shadow():
            return cast("T", _replaced(value, values.read(changed))), True
    except Exception:
        log.debug("playhead could not record a state", exc_info=True)
        return value, False


def _replaced(value: Any, new: Any) -> Any:
    if isinstance(value, dict) and isinstance(new, dict):
        value.clear()
        value.update(cast("dict[Any, Any]", new))
        return cast("dict[Any, Any]", value)
    if isinstance(value, list) and isinstance(new, list):
        value[:] = cast("list[Any]", new)
        return cast("list[Any]", value)
    return new
