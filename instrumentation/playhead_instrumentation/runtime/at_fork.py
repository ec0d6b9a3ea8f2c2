"""What objects do around a fork, for as long as they live.

``os.register_at_fork`` keeps what it is given for good; these functions keep no object alive.

A module that another thread imports at that moment (the shipper its codec) is locked in the child for
good, and nobody is there to let go of it: whoever imports it there would wait forever.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any


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


def _let_go_of_modules() -> None:
    """In a child: what other threads were importing is imported anew."""
    locks: dict[str, Any] = vars(sys.modules["_frozen_importlib"])["_module_locks"]
    for name, reference in list(locks.items()):
        owner = getattr(reference(), "owner", None)
        if owner is None or owner == threading.get_ident():
            continue
        del locks[name]
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):
            del sys.modules[name]


def _before_all_others() -> None:
    with contextlib.suppress(Exception):
        _let_go_of_modules()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_before_all_others)
