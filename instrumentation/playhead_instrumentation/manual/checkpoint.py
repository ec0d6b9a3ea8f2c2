"""Make checkpoints: the program's registered states, and a mark on the tape.

A replay restores everything before the mark. Registered states are also recorded, so that they can be
read, compared and edited without running anything.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from playhead_core.errors import UsageError
from playhead_core.process.own_messages import Log
from playhead_instrumentation.manual.state import replaced, reported, written
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.session.session import current
from playhead_instrumentation.tracing.calls import current_calls
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Edit
    from playhead_instrumentation.recorder.call import Call

log = Log(__name__)

T = TypeVar("T")

MANUAL, AUTO = "manual", "auto"

HALTED = "halted"
"""Label of checkpoints made when an operator or a rule paused the program."""

MARKED_KINDS = frozenset(("http", "grpc", "tool", "mcp"))
"""Kinds of exchanges before which checkpoints are made; the same wait for operators."""


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
    every_steps: int = 0,
    every_s: float = 0.0,
) -> None:
    """Register the state ``name``: every checkpoint records what ``get()`` returns.

    A fork that edits the state passes the edited value to ``set``; without ``set``, a dict or a list is
    updated in place. ``every_calls``: make a checkpoint before every so many model calls through an SDK
    that playhead supports; 0: only when the program calls `checkpoint`; the last registration counts.
    ``every_steps``: make one before every so many steps: requests, tool calls and MCP calls that go out,
    not counting retries. ``every_s``: make one before the first step that goes out so many seconds after
    the last checkpoint; 0: none. Registering a name again replaces it. ValueError for a negative number.
    Without a recording this does nothing.
    """
    if every_calls < 0 or every_steps < 0 or not every_s >= 0:
        raise ValueError("every_calls, every_steps and every_s are 0, or say how many")
    _registered[name] = _Registered(get, set)
    calls = current_calls()
    if calls is not None and every_calls:
        counted = itertools.count(1)
        calls.before = lambda: _made(AUTO, "") if next(counted) % every_calls == 0 else None
    session = current()
    if session is not None and (every_s or every_steps):
        from playhead_instrumentation.session.regular_checkpoints import make_every  # few ask for it

        make_every(session.driver, MARKED_KINDS, _mark, every_s=every_s, every_steps=every_steps)


def checkpoint(value: T = None, /, *, label: str = "") -> T:
    """Mark a point in the run to return to later, and return ``value``.

    ``value`` is recorded like a `playhead.state` with the name ``checkpoint``, together with every
    registered state. ``playhead checkpoints RUN`` lists the checkpoints, ``playhead state RUN:c1`` shows
    the state at the first one, ``playhead rollback RUN --to c1`` continues from it. A fork may edit the
    recorded value: then the edited value is returned. Without a recording this does nothing.
    """
    if value is None:
        _made(MANUAL, label)
        return value
    told, _ = reported(value, "checkpoint")
    _made(MANUAL, label, "checkpoint")
    return told


class _States:
    """Access to the registered states for modules that cannot import this one."""

    def halted(self) -> None:
        _made(AUTO, HALTED)

    def repeat_mark(self, kind: str, label: str) -> None:
        _made(kind, label)

    def repeat_edit(self, name: str) -> None:
        registered = _registered.get(name)
        if registered is not None:
            _told(name, registered)


RUNTIME.registered = _States()


def mark_before(call: Call, kind: str, label: str, by: str) -> int | None:
    """Make a checkpoint before an exchange goes out, and mark the exchange, for a replay.

    Call it in the thread of the exchange. ``by``: who requested it. Return the number of the
    checkpoint's fact; None if there is none.
    """
    made = _made(kind, label)
    session = current()
    attributes: dict[str, Any] = {a.PLAYHEAD_CONTROL_BY: by, a.PLAYHEAD_CHECKPOINT_KIND: kind}
    if label and session is not None:
        attributes[a.PLAYHEAD_CHECKPOINT_LABEL] = session.redactor.text(label)
    call.intervened(e.PLAYHEAD_CONTROL_CHECKPOINT, attributes)
    return made


def _mark(call: Call, why: str) -> None:
    """Make the checkpoint for which it is time."""
    mark_before(call, AUTO, "", why)


def edit_state(name: str, edits: Sequence[Edit]) -> None:
    """Change a registered state as an operator says. Its edited value goes on the tape.

    UsageError if the program has not registered it, if the edits do not fit, or if the program
    does not take the value; then nothing is changed.
    """
    from playhead_core.rerun.state_documents import edited
    from playhead_instrumentation.manual.fitting_state import fitting  # few edit states

    session = current()

    registered = _registered.get(name)
    if registered is None:
        known = ", ".join(sorted(_registered)) or "nothing"
        raise UsageError(f"no state {name} is registered", cause=f"registered is {known}")
    with Shadow():
        value = registered.get()
        told = written(value, name)
    if registered.set is None and not isinstance(value, dict | list):
        raise UsageError(f"the state {name} has no way to be set", hint="register_state(…, set=…)")
    with Shadow():
        new = fitting(name, edited(json.loads(told), edits), value)
        if registered.set is None:
            replaced(value, new)
        else:
            _set(name, registered.set, new)
    if session is not None:  # only now it is known that the state is another one
        session.driver.states.said(name, told, session.here(), edits)


def _set(name: str, setter: Callable[[Any], Any], new: Any) -> None:
    try:
        setter(new)
    except Exception as problem:
        why = f"{type(problem).__name__}: {problem}"
        raise UsageError(f"the program does not take this as {name}", cause=why) from problem


def _made(kind: str, label: str, *names: str) -> int | None:
    session = current()
    if session is None:
        return None
    try:
        lane = lanes.current()
        if lane is lanes.UNRECORDED or lane is lanes.GC:
            return None
        told = [*names, *(name for name, one in list(_registered.items()) if _told(name, one))]
        attributes: dict[str, Any] = {
            a.PLAYHEAD_CHECKPOINT_KIND: kind,
            a.PLAYHEAD_CHECKPOINT_STATES: told,
        }
        if label:
            attributes[a.PLAYHEAD_CHECKPOINT_LABEL] = session.redactor.text(label)
        return session.tell(e.PLAYHEAD_CHECKPOINT, attributes)
    except UsageError:  # a fork has edited a state, and it does not fit
        raise
    except Exception:
        log.debug("playhead could not make a checkpoint", exc_info=True)
        return None


def _told(name: str, registered: _Registered) -> bool:
    """Report a registered state. False if it cannot be read. UsageError: an edited one does not fit."""
    try:
        with Shadow():
            value = registered.get()
    except Exception:
        log.warning("playhead: the state %r cannot be read", name, exc_info=True)
        return False
    value, changed = reported(value, name, in_place=registered.set is None)
    if changed and registered.set is not None:
        with Shadow():
            _set(name, registered.set, value)
    return True
