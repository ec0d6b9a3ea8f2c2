"""What objects do around a fork, for as long as they live.

``os.register_at_fork`` keeps what it is given for good; these functions keep no object alive.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable


def before_fork(method: Callable[[], None]) -> None:
    """Have a bound method called in the process that is about to fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_weakly(method))


def in_child(method: Callable[[], None]) -> None:
    """Have a bound method called in every forked child, before anything else runs there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_weakly(method))


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    reference = weakref.WeakMethod(method)

    def call() -> None:
        alive = reference()
        if alive is not None:
            alive()

    return call
