"""A row of the table of boundaries, and the levels."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

Level: TypeAlias = Literal["exchanges", "causal", "strict"]

LEVELS: Final[tuple[Level, ...]] = ("exchanges", "causal", "strict")
"""From the cheapest to the most exact; each includes the previous ones."""

EXCHANGES, CAUSAL, STRICT = LEVELS

DEFAULT: Final[Level] = EXCHANGES
"""Level of a process if none is set."""

Choice: TypeAlias = Literal["always", "choice", "level"]


class Boundary(msgspec.Struct, frozen=True):
    """One row: a point where data, time or order enters the process."""

    name: str
    """Name in the setting ``boundaries``, in ``playhead doctor`` and in the documentation."""
    level: Level | None
    """The lowest level that includes it; None: only the setting ``boundaries`` adds it."""
    choice: Choice
    """``always``: in every recording. ``choice``: the setting ``boundaries`` adds or removes it.

    ``level``: only the level decides, because it makes no sense without the others.
    """
    facts: str
    """What it records on the tape."""
    without: str
    """What a replay does if the recording did not have it."""
    targets: tuple[str, ...]
    """Patched names, ``MODULE.CLASS.NAME`` or ``MODULE.NAME``; an audit hook: ``sys.addaudithook``."""
    at_start: tuple[str, ...] = ()
    """Installers called when the recording starts."""
    on_import: tuple[tuple[str, str], ...] = ()
    """Modules, and the installer called when each is imported."""
    guards: bool = True
    """Whether a replay installs it even if the recording did not have it."""
    is_compared: bool = True
    """Whether a replay compares what it records."""


def below(prefix: str, names: str) -> tuple[str, ...]:
    """Return several names under one: ``below("os", "stat open")`` is ``os.stat``, ``os.open``."""
    return tuple(f"{prefix}.{name}" for name in names.split())
