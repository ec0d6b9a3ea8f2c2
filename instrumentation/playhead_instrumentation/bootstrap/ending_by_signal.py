"""A process that ends itself by a signal, as uvicorn does after a SIGTERM: its last words go out first.

No handler of `atexit` runs then. What it had recorded would stay in its spool, and be gone with the disk
of its container.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any, Final

from playhead_instrumentation.patching.patches import PATCHES

_NAMES: Final = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGABRT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGTERM")
_ENDING: Final = frozenset(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
"""Signals that end a process which does not handle them, and that programs raise."""


def watch(deliver: Callable[[], object]) -> None:
    """Patch `signal.raise_signal`: ``deliver`` is called before a signal that ends the process."""

    def raised(call: Any, number: int, /) -> None:
        if _ends(number):
            deliver()
        call(number)

    PATCHES.attempt("signals", lambda: PATCHES.around(signal, "raise_signal", raised))


def _ends(number: int) -> bool:
    """Whether a signal that is raised now ends the process."""
    if number not in _ENDING or signal.getsignal(number) is not signal.SIG_DFL:
        return False
    return number not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
