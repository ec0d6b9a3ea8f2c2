"""States: what a program reports about itself, to be viewed, compared, and edited in a fork."""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar, cast

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.session.session import current

log = Log(__name__)

T = TypeVar("T")


def state(value: T, /, *, name: str = "state") -> T:
    """Record ``value`` as the current state of the program, and return it.

    The tape stores it as JSON, each content once, with the current span. An object is recorded by its
    attributes; for a value that cannot be stored (an open file, a function), only its class is recorded.
    A replay compares the states. A fork may edit a state: then the edited value is returned, and a dict
    or a list is also updated in place. If the edited value does not fit its class, the fork ends with a
    UsageError. ``name``: distinguishes several states of a program. Without a recording this does
    nothing.
    """
    return reported(value, name)[0]


def reported(value: T, name: str, *, in_place: bool = True) -> tuple[T, bool]:
    """As `state`; also whether a fork, or an operator in a replay, put another value in its place.

    ``in_place``: a dict or a list that is given is updated. UsageError for one that does not fit.
    """
    session = current()
    if session is None:
        return value, False
    try:
        with Shadow():  # code that an object runs to list its attributes is not part of the run
            told = written(value, name)
        changed = session.driver.states.said(name, told, session.here())
    except Exception:
        log.debug("playhead could not record a state", exc_info=True)
        return value, False
    if changed is None:
        return value, False
    from playhead_instrumentation.manual.fitting_state import fitting  # few edit states

    with Shadow():
        new = fitting(name, json.loads(changed), value)
        return cast("T", replaced(value, new) if in_place else new), True


def written(value: Any, name: str) -> bytes:
    """Return the state as JSON. The log names values that cannot be stored, once."""
    stubs: list[str] = []
    told = values.written(value, stubs=stubs)
    if stubs and (name, *stubs) not in _named:
        from playhead_core.rerun.state_documents import unkept_in

        _named.add((name, *stubs))
        left_out = ", ".join(unkept_in(json.loads(told)))
        log.warning("playhead: of the state %r this cannot be kept: %s", name, left_out)
    return told


_named: Final[set[tuple[str, ...]]] = set()
"""States with what cannot be kept of them, by name and classes."""


def replaced(value: Any, new: Any) -> Any:
    """``new``; a dict or a list becomes equal to it."""
    if isinstance(value, dict) and isinstance(new, dict):
        value.clear()
        value.update(cast("dict[Any, Any]", new))
        return cast("dict[Any, Any]", value)
    if isinstance(value, list) and isinstance(new, list):
        value[:] = cast("list[Any]", new)
        return cast("list[Any]", value)
    return new
