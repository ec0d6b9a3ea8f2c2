"""Checkpoints: the program's registered states, and a mark of the place on the tape.

The tape restores everything before the mark by a replay. What is registered is reported besides, so that
it can be read, compared and edited there without running anything.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from playhead_instrumentation.boundaries import values
from playhead_instrumentation.boundaries.state import reported
from playhead_instrumentation.runtime import lanes
from playhead_instrumentation.runtime.lanes import Shadow
from playhead_instrumentation.runtime.runtime import RUNTIME
from playhead_instrumentation.session.session import current
from playhead_instrumentation.spans.calls import current_calls
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.errors import UsageError

if TYPE_CHECKING:
    from playhead_semconv.rerun.plans import Edit

log = logging.getLogger(__name__)

T = TypeVar("T")

MANUAL, AUTO = "manual", "auto"

HALTED = "halted"
"""Label of checkpoints where an operator or a rule has halted the program."""


class _Registered(msgspec.Struct, frozen=True):
    get: Callable[[], Any]
    set: Callable[[Any], Any] | None


_registered: dict[str, _Registered] = {}


def register_state(
    name: str,
    get: Callable[[], Any],
    set: Callable[[Any], Any] | None = None,
    *,
    every_calls: int = 0,
) -> None:
    """Say where the program keeps the state ``name``: every checkpoint reports what ``get()`` returns.

    A fork that edits the state passes the edited one to ``set``; without it a dict or a list is updated
    in place. ``every_calls``: make a checkpoint before every so many calls of a model, through an SDK
    that playhead knows; 0: only where the program asks for one; the last that was said counts. A name
    that is registered again is replaced. ValueError for a negative number. Without a recording this does
    nothing.
    """
    if every_calls < 0:
        raise ValueError("every_calls is 0 or a number of calls")
    _registered[name] = _Registered(get, set)
    calls = current_calls()
    if calls is not None and every_calls:
        counted = itertools.count(1)
        calls.before = lambda: _made(AUTO, "") if next(counted) % every_calls == 0 else None


def checkpoint(value: T = None, /, *, label: str = "") -> T:
    """Mark this place in the run as one to go back to, and return ``value``.

    ``value`` is reported as with `playhead.state`, under the name ``checkpoint``, and so is every state
    that is registered. ``playhead checkpoints RUN`` lists the marks, ``playhead state RUN:c1`` shows
    what was so at the first, ``playhead rollback RUN --to c1`` goes on from it. A fork may edit what is
    reported: then the edited value is returned. Without a recording this does nothing.
    """
    if value is None:
        _made(MANUAL, label)
        return value
    told, _ = reported(value, "checkpoint")
    _made(MANUAL, label, "checkpoint")
    return told


class _States:
    """The registered states, for those who cannot name this module."""

    def halted(self) -> None:
        _made(AUTO, HALTED)

    def repeat_edit(self, name: str) -> None:
        registered = _registered.get(name)
        if registered is not None:
            _told(name, registered)


RUNTIME.registered = _States()


def edit_state(name: str, edits: Sequence[Edit]) -> None:
    """Change a registered state as an operator says. Its edited value goes on the tape.

    UsageError where the program has not registered it, or where the edits do not fit.
    """
    from playhead_semconv.rerun.state_documents import edited  # few edit states

    registered = _registered.get(name)
    if registered is None:
        known = ", ".join(sorted(_registered)) or "nothing"
        raise UsageError(f"no state {name} is registered", cause=f"registered is {known}")
    with Shadow():
        value = registered.get()
        told = values.written(value, stubs=[])
    if registered.set is None and not isinstance(value, dict | list):
        raise UsageError(f"the state {name} has no way to be set", hint="register_state(…, set=…)")
    edited(json.loads(told), edits)
    _told(name, registered, edits)


def _made(kind: str, label: str, *names: str) -> None:
    session = current()
    if session is None:
        return
    try:
        lane = lanes.current()
        if lane is lanes.UNRECORDED or lane is lanes.GC:
            return
        told = [*names, *(name for name, one in list(_registered.items()) if _told(name, one))]
        attributes: dict[str, Any] = {
            a.PLAYHEAD_CHECKPOINT_KIND: kind,
            a.PLAYHEAD_CHECKPOINT_STATES: told,
        }
        if label:
            attributes[a.PLAYHEAD_CHECKPOINT_LABEL] = session.redactor.text(label)
        session.tell(e.PLAYHEAD_CHECKPOINT, attributes)
    except Exception:
        log.debug("playhead could not make a checkpoint", exc_info=True)


def _told(name: str, registered: _Registered, edits: Sequence[Edit] = ()) -> bool:
    """Report a registered state. False if the program's own function failed."""
    try:
        with Shadow():
            value = registered.get()
        value, changed = reported(value, name, edits)
        if changed and registered.set is not None:
            with Shadow():
                registered.set(value)
        return True
    except Exception:
        log.warning("playhead: the state %r cannot be read or set", name, exc_info=True)
        return False
