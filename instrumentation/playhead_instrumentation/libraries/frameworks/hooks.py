"""Install hooks of frameworks: each when the program imports the framework.

A hook is an entry point of the group `GROUP`: its name is the framework's top-level package, and its
value a function that takes that package, which has just been imported. So another distribution can add
a hook. A program that does not import the framework loads no hook. `OperationSpan` is for all of them.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from opentelemetry.util._importlib_metadata import (
    EntryPoint,
    entry_points,  # pyright: ignore[reportUnknownVariableType]
)

from playhead_instrumentation.patching.patches import Apply, Patches
from playhead_instrumentation.session.session import Session

GROUP: Final = "playhead_frameworks"
"""Entry point group of hooks. OpenTelemetry has read the entry points already, and keeps them."""


def watch(patches: Patches, session: Session) -> None:
    """Load each installed hook when its framework is imported."""
    for entry in entry_points(group=GROUP):
        patches.when_imported(entry.name, entry.name, _loads(entry))


def _loads(entry: EntryPoint) -> Apply:
    def hook(framework: ModuleType) -> None:
        entry.load()(framework)

    return hook
