"""What is patched in this process, what could not be, and why.

Every patch goes through here: it is applied when its module is imported (or at once, where it already
is), a failure of one never reaches the program or another patch, and the outcome is known by name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import wrapt

Apply = Callable[[ModuleType], None]
"""Patches a module that has just been imported. Raises `Unpatchable`, or anything, if it cannot."""


class Unpatchable(Exception):
    """The module does not have what the patch needs; the text says what."""


class Patches:
    """The patches of a process. Names are those the program's author knows: ``openai``, ``httpx2``."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._patched: dict[str, None] = {}
        self._unpatched: dict[str, str] = {}
        self._watched: set[tuple[str, str]] = set()
        self.on_failure: Callable[[str, str], None] | None = None
        """Told of each patch that failed: name and reason."""

    def when_imported(self, module: str, name: str, apply: Apply) -> None:
        """Apply a patch when ``module`` is imported; at once if it is. Twice the same is once."""
        with self._lock:
            if (module, name) in self._watched:
                return
            self._watched.add((module, name))

        def hook(imported: ModuleType) -> None:
            self.attempt(name, lambda: apply(imported))

        wrapt.register_post_import_hook(hook, module)

    def attempt(self, name: str, patch: Callable[[], None]) -> bool:
        """Run ``patch`` and keep its outcome under ``name``. Never raises."""
        try:
            patch()
        except Exception as problem:
            self.failed(name, problem)
            return False
        with self._lock:
            self._patched[name] = None
        return True

    def failed(self, name: str, problem: Exception) -> None:
        """Keep that ``name`` could not be patched, and why."""
        reason = str(problem) if isinstance(problem, Unpatchable) else _described(problem)
        with self._lock:
            self._unpatched[name] = reason
        if self.on_failure is not None:
            self.on_failure(name, reason)

    def patched(self) -> list[str]:
        """Names of what is patched so far, in the order of patching."""
        with self._lock:
            return [name for name in self._patched if name not in self._unpatched]

    def unpatched(self) -> list[str]:
        """What could not be patched, as ``name: reason``."""
        with self._lock:
            return [f"{name}: {reason}" for name, reason in self._unpatched.items()]


def required(owner: Any, name: str) -> Any:
    """``owner.name``, or `Unpatchable` saying that it is not there."""
    found = getattr(owner, name, None)
    if found is None:
        raise Unpatchable(f"no {getattr(owner, '__name__', owner)}.{name}")
    return found


def _described(problem: Exception) -> str:
    text = str(problem)
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__


PATCHES = Patches()
"""The patches of this process."""
