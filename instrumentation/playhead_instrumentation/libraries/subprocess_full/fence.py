"""Blocks every start of a process that the tape of a replay does not answer."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from playhead_core.facts import Fidelity
from playhead_instrumentation.libraries.subprocess.in_full import ProcessBlocked, allowed
from playhead_instrumentation.patching.patches import PATCHES, Patches
from playhead_instrumentation.session.session import Session, current

EVENTS: Final = {
    "os.system": "os.system",
    "os.posix_spawn": "os.posix_spawn",
    "os.exec": "os.exec",
    "os.spawn": "os.spawn",
    "os.startfile": "os.startfile",
    "os.forkpty": "os.forkpty",
}
"""Audit events of functions that start a program → the name of the function."""


def watch(patches: Patches, session: Session) -> None:
    """Block processes if only a tape may answer."""
    if session.driver.fenced:
        _install()


def block(what: str) -> None:
    """Raise `ProcessBlocked` in a replay."""
    session = current()
    if session is None or not session.driver.fenced or allowed():
        return
    session.driver.effect("process", what, fidelity=Fidelity.BLOCKED)
    raise ProcessBlocked(what)


@functools.cache
def _install() -> None:
    # An audit hook also sees starts from C; it cannot be removed.
    sys.addaudithook(_audit)
    try:
        import _posixsubprocess
    except ImportError:
        return
    module: Any = _posixsubprocess
    original: Callable[..., int] = module.fork_exec

    # It raises no audit event of its own; multiprocessing calls it.
    @functools.wraps(original)
    def fork_exec(args: Any, *more: Any) -> int:
        words = [os.fsdecode(word) for word in args or ()]
        block(" ".join(words[:1]) or "a process")
        return original(args, *more)

    PATCHES.put(module, "fork_exec", fork_exec)
    subprocess = sys.modules.get("subprocess")
    if subprocess is not None and getattr(subprocess, "_fork_exec", None) is original:
        PATCHES.put(subprocess, "_fork_exec", fork_exec)


def _audit(event: str, arguments: tuple[Any, ...], heard: Mapping[str, str] = EVENTS) -> None:
    """Hears every event. ``heard`` is there even if the names of this module are gone, at the end."""
    if event in heard:
        first = arguments[0] if arguments else ""
        try:
            named = os.fsdecode(first)
        except TypeError:
            named = str(first)
        block(f"{heard[event]} {named}".strip())
