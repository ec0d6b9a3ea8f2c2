"""Installs the boundaries of a process.

The table of boundaries says which of them a process has. A file is imported when its row is installed,
or when the module that it patches is imported.
"""

from __future__ import annotations

import functools

from playhead_core.boundaries import BOUNDARIES
from playhead_instrumentation.patching.patches import Patches, found
from playhead_instrumentation.session.session import Session


def watch(patches: Patches, session: Session) -> None:
    """Install the rows of the table that ``session`` has. A row that fails does not stop the others."""
    patches.forgiving = not session.driver.closed
    if session.settings.recording_level != "exchanges":
        from playhead_instrumentation.patching import builtins

        patches.like = builtins.genuine
    for row in session.boundaries:
        for place in row.at_start:
            patches.attempt(row.name, functools.partial(_install, place, patches, session))
        for module, place in row.on_import:
            patches.when_imported(module, row.name, place)


def watch_clients(patches: Patches) -> None:
    """Install only what makes spans of model calls, for a process that keeps no tape."""
    for row in BOUNDARIES:
        for module, place in row.on_import:
            if place.startswith("libraries.model_sdks."):
                patches.when_imported(module, row.name, place)


def _install(place: str, patches: Patches, session: Session) -> None:
    found(place)(patches, session)
