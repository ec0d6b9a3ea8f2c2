"""A process that ends by `os._exit`, which runs no handlers of `atexit`.

A forked child is left alone: it often ends so because exit hooks of its parent must not run in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from playhead_instrumentation.patching.patches import PATCHES


def watch(end: Callable[[int], object]) -> None:
    """Patch `os._exit`: ``end``, which must not raise, is called with the exit status first."""
    process = os.getpid()

    def leave(call: Any, status: int) -> None:
        if os.getpid() == process:
            end(status)
        call(status)

    PATCHES.attempt("exit", lambda: PATCHES.around(os, "_exit", leave))
