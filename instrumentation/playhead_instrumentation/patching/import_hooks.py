"""Call a function when a module is imported, even if another thread is importing it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

import wrapt


def call_when_imported(name: str, call: Callable[[ModuleType], object]) -> None:
    """Call ``call`` once with the whole module ``name``: when it is imported, or now if it already is.

    If another thread is importing it, this waits for that thread.
    """
    called: list[ModuleType] = []

    def hook(module: ModuleType) -> None:
        called.append(module)
        if getattr(module.__spec__, "_initializing", False):
            importlib.import_module(name)  # waits if another thread is importing it
        call(module)

    wrapt.register_post_import_hook(hook, name)
    if called:
        return
    # A thread that had looked for the module before the hook was registered imports it without the hook.
    # The import system has a function that waits for it, but no public one.
    wait_for_import = getattr(vars(importlib).get("_bootstrap"), "_lock_unlock_module", None)
    if wait_for_import is not None:
        wait_for_import(name)
    module = sys.modules.get(name)
    if module is not None and not called:
        hook(module)
