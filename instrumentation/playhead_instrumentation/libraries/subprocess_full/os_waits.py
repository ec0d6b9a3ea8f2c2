"""Waits of the program for processes through `os`, and its signals to them."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.subprocess_full.child import CHILDREN, Child
from playhead_instrumentation.libraries.subprocess_full.fence import block
from playhead_instrumentation.libraries.subprocess_full.live_child import LiveChild
from playhead_instrumentation.libraries.subprocess_full.replayed_child import ReplayedChild
from playhead_instrumentation.patching import unpatched
from playhead_instrumentation.patching.lanes import Outside
from playhead_instrumentation.patching.patches import INNER, Patches
from playhead_instrumentation.patching.unpatched import REAL

LAYERS: dict[str, Callable[..., Any]] = {}
"""Layers by name in `os`."""


def watch(patches: Patches) -> None:
    """Patch them."""
    for name, layer in LAYERS.items():
        if hasattr(os, name):
            patches.attempt(
                f"os.{name}", functools.partial(patches.around, os, name, layer, order=INNER)
            )


def _talks(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        LAYERS[name] = function
        return function

    return keep


def _known(pid: Any) -> Child | None:
    if recording() is None:
        return None
    child = CHILDREN.get(pid)
    return None if child is None or child.passes else child


@_talks("waitpid")
def _waitpid(original: Any, pid: int, options: int) -> Any:
    child = _known(pid)
    if child is None and pid == -1:
        child = _first_to_end()
    if child is None:
        return original(pid, options)
    return child.answer(_wait_live, _wait_again, original, options)


def _wait_live(child: LiveChild, original: Any, options: int) -> tuple[int, int]:
    if options & os.WNOHANG:
        pid, status = original(child.pid, options)
    else:
        with Outside():
            pid, status = original(child.pid, options)
    if pid == child.pid:
        child.exited(os.waitstatus_to_exitcode(status), in_turn=True)
    elif options & os.WNOHANG:
        child.running()
    return pid, status


def _wait_again(child: ReplayedChild, _: Any, options: int) -> tuple[int, int]:
    if child.call.ended is not None:
        raise ChildProcessError(10, os.strerror(10))
    status = child.poll() if options & os.WNOHANG else child.wait()
    if not isinstance(status, int):
        return 0, 0
    until_over(child, status)
    return child.pid, _raw(status)


KILLED_PATIENCE_S = 5.0
"""Seconds that a replayed process may take to reach the point where its recording was killed."""


def until_over(child: ReplayedChild, status: int) -> None:
    """Wait until the fork of this replay has ended too, so that its output is in the pipes."""
    pid, child.beside = child.beside, 0
    if not pid or unpatched.waitpid is None:
        return
    with Outside(), contextlib.suppress(ChildProcessError):
        patient_until = REAL.now_s() + KILLED_PATIENCE_S
        while status < 0 and REAL.now_s() < patient_until:
            if unpatched.waitpid(pid, os.WNOHANG)[0]:
                return
            REAL.sleep(0.01)
        if status < 0:
            unpatched.kill(pid, signal.SIGKILL)
        unpatched.waitpid(pid, 0)


def _raw(status: int) -> int:
    return status << 8 if status >= 0 else -status


def _first_to_end() -> Child | None:
    """Replay: the child that is the next to end on the tape; None: the world decides."""
    ending = [
        (due, child)
        for child in CHILDREN.values()
        if not child.passes and (due := child.due) is not None
    ]
    return min(ending, key=itemgetter(0), default=(None, None))[1]


@_talks("wait")
def _wait(original: Any) -> Any:
    if recording() is None or not CHILDREN:
        return original()
    child = _first_to_end()
    if child is not None:
        return _waitpid(original, child.pid, 0)
    with Outside():
        pid, status = original()
    child = CHILDREN.get(pid)
    if child is not None and not child.passes:
        child.exited(os.waitstatus_to_exitcode(status), in_turn=True)
    return pid, status


@_talks("kill")
def _kill(original: Any, pid: int, number: int) -> Any:
    session = recording()
    if session is None:
        return original(pid, number)
    child = _known(pid)
    if child is None:
        if pid != os.getpid():
            block(f"a signal to the process {pid}")
        return original(pid, number)
    return _signal(original, child, pid, number)


@_talks("killpg")
def _killpg(original: Any, group: int, number: int) -> Any:
    session = recording()
    if session is None:
        return original(group, number)
    child = _known(group)
    if child is None or not child.own_group:
        block(f"a signal to the process group {group}")
        return original(group, number)
    return _signal(original, child, group, number)


def _signal(original: Any, child: Child, target: int, number: int) -> Any:
    return child.answer(_signal_live, _signal_again, original, target, number)


def _signal_live(child: LiveChild, original: Any, target: int, number: int) -> Any:
    _signalled(child, number)
    return original(target, number)


def _signal_again(child: ReplayedChild, _: Any, target: int, number: int) -> None:
    if child.call.ended is not None:
        raise ProcessLookupError(3, os.strerror(3))
    _signalled(child, number)


def _signalled(child: Child, number: int) -> None:
    session = recording()
    if number and session is not None:
        child.signalled = True
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        session.driver.effect("signal", f"{name} {session.redactor.text(child.key)}")


@_talks("getpgid")
def _getpgid(original: Any, pid: int) -> Any:
    child = _known(pid)
    return original(pid) if child is None else child.answer(_group_live, _group_again, original, pid)


def _group_live(_: LiveChild, original: Any, pid: int) -> Any:
    return original(pid)


def _group_again(child: ReplayedChild, _: Any, pid: int) -> int:
    return pid if child.own_group else os.getpgrp()
