"""Fork hooks of objects, for as long as the objects live.

``os.register_at_fork`` keeps its callbacks for ever; these functions keep no object alive.

A module that another thread is importing during the fork (the shipper its codec) stays locked in the
child, since that thread does not exist there: an import of it in the child would block for ever.
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
    """Call a bound method in this process before each fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_weakly(method))


def in_child(method: Callable[[], None]) -> None:
    """Call a bound method in every forked child before anything else runs there."""
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
    """In a child: have modules that other threads were importing imported anew."""
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
