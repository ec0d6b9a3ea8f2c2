"""Runtimes that take over event loops or threads, beside which one thing at a time cannot be let in.

A strict recording steps down to the causal level as soon as one of them is put to work; it is said once,
and the exit fact says the level that was kept. At the other levels nothing is held back, and all of them
run as they are: nothing is patched there.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead_instrumentation.determinism.hooks import locks
from playhead_instrumentation.runtime.notices import Notices
from playhead_instrumentation.runtime.patching import PATCHES, required
from playhead_instrumentation.session import session


def hook_nest_asyncio(module: ModuleType) -> None:
    """An event loop that runs inside itself is never quiet."""
    _before(module, "apply", "nest_asyncio lets event loops run inside each other")


def hook_gevent(module: ModuleType) -> None:
    """Threads become greenlets, which wait for each other without the system knowing."""
    for name in ("patch_all", "patch_thread"):
        _before(module, name, "gevent makes threads into greenlets")


def hook_eventlet(module: ModuleType) -> None:
    """The same."""
    _before(module, "monkey_patch", "eventlet makes threads into greenlets")


def hook_trio(module: ModuleType) -> None:
    """Its tasks are none of asyncio, and cannot be made to wait as those can."""
    _before(module, "run", "trio runs tasks of its own")


def hook_trio_guest(module: ModuleType) -> None:
    """The same, inside another event loop."""
    _before(module, "start_guest_run", "trio runs tasks of its own")


def hook_ipykernel(module: ModuleType) -> None:
    """A kernel serves a notebook, in threads that wait for sockets without Python knowing."""
    step_down("a Jupyter kernel waits for its notebook beside the program")


def _before(module: ModuleType, name: str, why: str) -> None:
    def layer(following: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        step_down(why)
        return following(*args, **kwargs)

    required(module, name)
    PATCHES.around(module, name, layer)


def step_down(why: str) -> None:
    """A strict recording is causal from now on, and says ``why``; once."""
    running = session.current()
    if running is None:
        return
    if running.mode != "record":
        running.driver.gate.close()
        return
    if running.driver.gate.level != "strict":
        return
    running.driver.gate.loosen()
    locks.unhook()  # gevent patches what it finds there
    Notices(running.settings.quiet).problem(f"recording at level causal, not strict: {why}")
