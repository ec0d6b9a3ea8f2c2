"""Instrumentors of other distributions that are active in a recording and in its replay.

``opentelemetry-instrument`` loads them all, as it does without us. Elsewhere those that the setting
``instrumentors`` names are loaded, by default none, so a program that instruments itself finds the same
state as without us. Their names are on the tape, and a replay loads the same ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from opentelemetry.util._importlib_metadata import (
    EntryPoint,
    entry_points,  # pyright: ignore[reportUnknownVariableType]
)

from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching.patches import PATCHES

GROUP = "opentelemetry_instrumentor"

OURS = "playhead"
"""Name of our own instrumentor."""

ALL = "all"
"""Value of the setting ``instrumentors`` for all that are installed."""

log = Log(__name__)


def installed() -> list[EntryPoint]:
    """Instrumentors that are installed and not switched off, in the order of loading."""
    off = {name.strip() for name in os.environ.get(VARIABLE, "").split(",")}
    if "*" in off:
        return []
    return [one for one in entry_points(group=GROUP) if one.name not in off | {OURS}]


VARIABLE = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"


def chosen(setting: str) -> list[str]:
    """Names of the installed instrumentors that the setting ``instrumentors`` requests."""
    asked = set(setting.replace(",", " ").split())
    return [one.name for one in installed() if ALL in asked or one.name in asked]


def load(names: Iterable[str]) -> None:
    """Load instrumentors in the order of their entry points. A failure stops no other. Never raises."""
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
            return  # the library that it instruments is not installed
        entry_point.load()().instrument(skip_dep_check=True)
    except ModuleNotFoundError:
        log.debug("%s instruments what is not there", entry_point.name)
    except Exception as problem:
        log.debug("%s could not be loaded", entry_point.name, exc_info=True)
        PATCHES.failed(entry_point.name, problem)


def recorded(said: object) -> Sequence[str]:
    """The names in the attribute of a process-start fact."""
    return [str(one) for one in said] if isinstance(said, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
