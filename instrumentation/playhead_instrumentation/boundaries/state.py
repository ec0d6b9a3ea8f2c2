"""States: what a program says of itself, so that it can be looked at, compared, and edited in a fork."""

from __future__ import annotations

import logging
from typing import Any, TypeVar, cast

from playhead_instrumentation.boundaries import values
from playhead_instrumentation.runtime.lanes import Shadow
from playhead_instrumentation.session.session import current

log = logging.getLogger(__name__)

T = TypeVar("T")


def state(value: T, /, *, name: str = "state") -> T:
    """Say that ``value`` is the state that the program is in, and get it back.

    It is put on the tape as JSON, each content once, with the current span. Objects of any class are
    told by their attributes; of what cannot be kept (open files, functions) the class alone. A replay
    compares the states. A fork may edit one: then the edited value is given back, and a dict or a list
    holds it, too. ``name``: where a program says several. Without a recording nothing happens.
    """
    session = current()
    if session is None:
        return value
    try:
        with Shadow():  # what an object does to say its attributes is no part of the run
            told = values.written(value, stubs=[])
        changed = session.driver.states.said(name, told, session.here())
        if changed is None:
            return value
        with Shadow():
            return cast("T", _replaced(value, values.read(changed)))
    except Exception:
        log.debug("playhead could not record a state", exc_info=True)
        return value


def _replaced(value: Any, new: Any) -> Any:
    if isinstance(value, dict) and isinstance(new, dict):
        value.clear()
        value.update(cast("dict[Any, Any]", new))
        return cast("dict[Any, Any]", value)
    if isinstance(value, list) and isinstance(new, list):
        value[:] = cast("list[Any]", new)
        return cast("list[Any]", value)
    return new
