"""Instrumentors of other distributions: which are active in a recording, and again in its replay.

Under ``opentelemetry-instrument`` that loads them all, as without us. Elsewhere those are loaded that
the setting ``instrumentors`` names, by default none: a program that instruments itself finds things as
they are without us. Their names stand on the tape, and a replay loads the same.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence

from opentelemetry.util._importlib_metadata import (
    EntryPoint,
    entry_points,  # pyright: ignore[reportUnknownVariableType]
)

from playhead_instrumentation.runtime.patching import PATCHES

GROUP = "opentelemetry_instrumentor"

OURS = "playhead"
"""Name of our own."""

ALL = "all"
"""In the setting ``instrumentors``: each that is installed."""

log = logging.getLogger(__name__)


def installed() -> list[EntryPoint]:
    """Those that are installed and not switched off, in the order in which they are loaded."""
    off = {name.strip() for name in os.environ.get(VARIABLE, "").split(",")}
    if "*" in off:
        return []
    return [one for one in entry_points(group=GROUP) if one.name not in off | {OURS}]


VARIABLE = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"


def chosen(setting: str) -> list[str]:
    """Names of those that the setting ``instrumentors`` asks for and that are installed."""
    asked = set(setting.replace(",", " ").split())
    return [one.name for one in installed() if ALL in asked or one.name in asked]


def load(names: Iterable[str]) -> None:
    """Load them, in the order of their entry points. One that fails stops no other. Never raises."""
    wanted = set(names)
    if not wanted:
        return
    for one in entry_points(group=GROUP):
        if one.name in wanted:
            _load(one)


def _load(entry_point: EntryPoint) -> None:
    from opentelemetry.instrumentation.dependencies import get_dist_dependency_conflicts

    try:
        distribution = entry_point.dist
        if distribution is not None and get_dist_dependency_conflicts(distribution):
            return  # what it instruments is not there
        entry_point.load()().instrument(skip_dep_check=True)
    except ModuleNotFoundError:
        log.debug("%s instruments what is not there", entry_point.name)
    except Exception as problem:
        log.debug("%s could not be loaded", entry_point.name, exc_info=True)
        PATCHES.failed(entry_point.name, problem)


def recorded(said: object) -> Sequence[str]:
    """The names that a process-start fact says."""
    return [str(one) for one in said] if isinstance(said, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
