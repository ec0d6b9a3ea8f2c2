"""The table of boundaries: what each level patches and records, and what a replay does without it.

This table is the single source. The bootstrap installs from it, ``playhead doctor`` and the
documentation print it, and a test compares the interpreter before and after with it. Each row names its
installers as ``MODULE:FUNCTION`` below `playhead_instrumentation`: unselected rows are not imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from playhead_core.boundary_rows.boundary import (
    CAUSAL,
    DEFAULT,
    EXCHANGES,
    LEVELS,
    STRICT,
    Boundary,
    Level,
)
from playhead_core.boundary_rows.connections import CONNECTIONS
from playhead_core.boundary_rows.interpreter import INTERPRETER
from playhead_core.boundary_rows.model_clients import MODEL_CLIENTS
from playhead_core.errors import ConfigurationError, nearest
from playhead_semconv import attributes as a

__all__ = (
    "BOUNDARIES",
    "BY_NAME",
    "CAUSAL",
    "DEFAULT",
    "EXCHANGES",
    "LEVELS",
    "STRICT",
    "Boundary",
    "Level",
    "at_replay",
    "had",
    "has",
    "names",
    "parse",
    "selected",
    "unkept",
)

BOUNDARIES: Final = (*MODEL_CLIENTS, *CONNECTIONS, *INTERPRETER)
"""The rows, in the order in which they are installed."""

BY_NAME: Final = {row.name: row for row in BOUNDARIES}


def has(level: Level, row: Boundary) -> bool:
    """Whether ``level`` includes ``row`` by default."""
    return row.level is not None and LEVELS.index(row.level) <= LEVELS.index(level)


def selected(level: Level, changes: str = "", disabled: Iterable[str] = ()) -> tuple[Boundary, ...]:
    """Return the rows that a recording at ``level`` installs.

    ``changes``: the setting ``boundaries``: ``+clock,-http.urllib3``. ``disabled``: names to remove, if
    they are rows that can be chosen and ``changes`` does not add them; other names are ignored.
    Raise `ConfigurationError` for unknown names in ``changes`` and for rows that cannot be chosen.

    >>> [row.name for row in selected("exchanges", "+clock", ["grpc"]) if row.name[:2] in ("cl", "gr")]
    ['grpc.aio', 'clock']
    """
    chosen = {row.name: has(level, row) for row in BOUNDARIES}
    for name in disabled:
        if name in BY_NAME and BY_NAME[name].choice == "choice":
            chosen[name] = False
    for sign, name in parse(changes):
        chosen[name] = sign == "+"
    return tuple(row for row in BOUNDARIES if chosen[row.name])


def parse(changes: str) -> list[tuple[str, str]]:
    """Return the signs and names of the setting ``boundaries``. `ConfigurationError`: see `selected`.

    >>> parse(" +clock, -http.urllib3")
    [('+', 'clock'), ('-', 'http.urllib3')]
    """
    found: list[tuple[str, str]] = []
    for word in changes.replace(",", " ").split():
        sign, name = word[:1], word[1:]
        if sign not in ("+", "-"):
            raise ConfigurationError(
                f"boundaries: {word!r} has no sign",
                hint=f"write +{word} to add it, or -{word} to remove it",
            )
        row = BY_NAME.get(name)
        if row is None:
            near = nearest(name, BY_NAME)
            hint = f"did you mean {near}?" if near else "playhead doctor lists all"
            raise ConfigurationError(f"boundaries: unknown name {name!r}", hint=hint)
        if row.choice == "always":
            raise ConfigurationError(f"boundaries: {name} cannot be changed: every recording has it")
        if row.choice == "level":
            raise ConfigurationError(
                f"boundaries: {name} depends on the level only", hint=f"level {row.level} has it"
            )
        found.append((sign, name))
    return found


def at_replay(recorded: Iterable[str]) -> tuple[Boundary, ...]:
    """Return the rows that a replay installs; ``recorded``: names of the rows that the recording had."""
    had = set(recorded)
    return tuple(row for row in BOUNDARIES if row.guards or row.name in had)


def had(start: Mapping[str, Any]) -> list[str]:
    """Return the names of the boundaries of a recording, from its process-start fact.

    Old recordings do not list them: they had all boundaries of their level.
    """
    told = start.get(a.PLAYHEAD_RUN_BOUNDARIES)
    if isinstance(told, list):
        return [str(name) for name in cast("list[object]", told)]
    level = start.get(a.PLAYHEAD_RUN_LEVEL)
    return names([row for row in BOUNDARIES if has(STRICT if level == STRICT else CAUSAL, row)])


def unkept(recorded: Iterable[str], level: str) -> dict[str, str]:
    """Return the boundaries that a recording lacks, with the lowest level that includes each.

    ``recorded``: names of those that it had. Compared are those of its ``level``, and of `CAUSAL` at
    least, without those that need a library which the program may not import.
    """
    had = set(recorded)
    known = level if level in LEVELS else CAUSAL
    wanted = max(LEVELS.index(CAUSAL), LEVELS.index(known))
    return {
        row.name: row.level
        for row in BOUNDARIES
        if row.level is not None
        and LEVELS.index(row.level) <= wanted
        and row.name not in had
        and row.is_compared
        and not _comes_with_a_library(row)
    }


def _comes_with_a_library(row: Boundary) -> bool:
    roots = {module.partition(".")[0] for module, _ in row.on_import}
    whole = row.choice == "level" and not row.at_start
    return whole and bool(roots) and roots.isdisjoint(sys.stdlib_module_names)


def names(rows: Sequence[Boundary]) -> list[str]:
    """Return the names of rows."""
    return [row.name for row in rows]
