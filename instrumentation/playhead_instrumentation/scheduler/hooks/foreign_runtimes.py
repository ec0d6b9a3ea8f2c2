"""Runtimes that take over event loops or threads, so that deliveries cannot be made one at a time.

A strict recording steps down to the causal level as soon as one of them is used. It reports this once,
and the exit fact has the level that was kept. At the other levels nothing is held back and nothing is
patched, so all of these runtimes work unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching.notices import Notices
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.scheduler import hubs, timer_ends
from playhead_instrumentation.scheduler.hooks import locks, waits
from playhead_instrumentation.session import session

log = Log(__name__)


def hook_nest_asyncio(module: ModuleType) -> None:
    """Step down for nest_asyncio: an event loop that runs inside itself is never idle."""
    _before(module, "apply", "nest_asyncio lets event loops run inside each other")


def hook_gevent(module: ModuleType) -> None:
    """Watch the hub of gevent, whose greenlets threads become; at strict, step down."""

    def patch_all(following: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        _meet_greenlets(threads=args[4] if len(args) > 4 else kwargs.get("thread", True))
        return following(*args, **kwargs)

    def patch_thread(following: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        _meet_greenlets(threads=True)
        return following(*args, **kwargs)

    PATCHES.around_all(module, {"patch_all": patch_all, "patch_thread": patch_thread})


def _meet_greenlets(threads: bool) -> None:
    running = session.current()
    adopted = threads and _adopted()
    wakes = timer_ends.kept
    if running is None or wakes is None or not (adopted and wakes.plays):
        step_down("gevent makes threads into greenlets")
        return
    waits.leave_threads()
    locks.unhook()


def _adopted() -> bool:
    try:
        return hubs.adopt()
    except Exception:
        log.debug("playhead could not watch the hub of gevent", exc_info=True)
        return False


def hook_eventlet(module: ModuleType) -> None:
    """Step down for eventlet, for the same reason as for gevent."""
    _before(module, "monkey_patch", "eventlet makes threads into greenlets")


def hook_trio(module: ModuleType) -> None:
    """Step down for trio: its tasks are not asyncio tasks and cannot be held back."""
    _before(module, "run", "trio runs tasks of its own")


def hook_trio_guest(module: ModuleType) -> None:
    """Step down where trio runs as a guest inside another event loop."""
    _before(module, "start_guest_run", "trio runs tasks of its own")


def hook_ipykernel(module: ModuleType) -> None:
    """Step down in a Jupyter kernel: its threads wait for sockets without Python knowing."""
    step_down("a Jupyter kernel waits for its notebook beside the program")


def _before(module: ModuleType, name: str, why: str) -> None:
    def layer(following: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        step_down(why)
        return following(*args, **kwargs)

    required(module, name)
    PATCHES.around(module, name, layer)


def step_down(why: str) -> None:
    """Hold nothing back from now on. For a strict recording report ``why``, once."""
    running = session.current()
    if running is None:
        return
    was_strict = running.driver.gate.step_down()
    locks.unhook()  # gevent must find the original locks to patch
    if was_strict:
        Notices(running.settings.quiet).problem(f"recording at level causal, not strict: {why}")
