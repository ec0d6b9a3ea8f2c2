"""Whose code a file holds: the program's, a library's, the interpreter's, or ours; and who calls."""

from __future__ import annotations

import enum
import os
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

import playhead_core


class Owner(enum.Enum):
    """Whose code it is."""

    PROGRAM = enum.auto()
    LIBRARY = enum.auto()
    """An installed package."""
    STANDARD = enum.auto()
    """The standard library, its frozen modules too."""
    OURS = enum.auto()
    MADE = enum.auto()
    """Code that was made at run time, or typed: its file name (``<string>``) does not say whose."""


ROOMS: Final = (
    "playhead",
    "playhead_instrumentation",
    "playhead_exporter",
    "playhead_core",
    "playhead_genai",
    "playhead_semconv",
)
"""Our packages in the process of an agent."""

_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_HERE: Final = Path(__file__).parents[2]
_CORE: Final = Path(playhead_core.__file__).parent
_OURS: Final = tuple(
    f"{folder}{os.sep}"
    for folder in (
        _HERE,
        _HERE.with_name("playhead"),
        _CORE,
        _CORE.with_name("playhead_genai"),
        _CORE.with_name("playhead_semconv"),
    )
)


def _folders(*names: str) -> tuple[str, ...]:
    paths = {sysconfig.get_path(name) for name in names}
    return tuple(path + os.sep for path in paths | set(map(os.path.realpath, paths)))


@cache
def _standard() -> tuple[str, ...]:
    return _folders("stdlib", "platstdlib")


@cache
def _packages() -> tuple[str, ...]:
    return _folders("purelib", "platlib")


_known: Final[dict[str, Owner]] = {}


def owner_of(path: str) -> Owner:
    """The owner of code by the name of its file, as in ``co_filename`` or ``__file__``. Never raises."""
    if path.startswith("<"):
        return Owner.STANDARD if path.startswith("<frozen ") else Owner.MADE
    found = _known.get(path)
    if found is None:
        found = _known[path] = _look(path)
    return found


def _look(path: str) -> Owner:
    if path.startswith(_OURS):
        return Owner.OURS
    if in_packages(path):
        return Owner.LIBRARY
    if path.startswith(_standard()) or os.path.realpath(path).startswith(_standard()):
        return Owner.STANDARD
    return Owner.PROGRAM


def in_packages(path: str) -> bool:
    """Whether a file lies in a folder of installed packages, whosesoever it is."""
    return any(part in path for part in _INSTALLED) or path.startswith(_packages())


def is_ours(frame: FrameType) -> bool:
    """Whether a frame is ours, by its module or its file."""
    module = str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in ROOMS[1:] or owner_of(frame.f_code.co_filename) is Owner.OURS


@dataclass(frozen=True, slots=True)
class CallSite:
    """The library and the line of the program from which a call comes."""

    library: str = ""
    """The nearest installed package on the stack; empty if the program itself calls."""
    place: str = ""
    """``agent.py:12``: the nearest line of the program; empty if none is on the stack."""


def installed(path: str) -> bool:
    """Whether a file belongs to an installed package, the standard library or playhead."""
    return owner_of(path) in (Owner.LIBRARY, Owner.STANDARD, Owner.OURS)


def caller(depth: int) -> CallSite:
    """The caller of the code ``depth`` frames above this function."""
    library = ""
    frame = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        name = frame.f_code.co_filename
        owner = owner_of(name)
        if owner is Owner.PROGRAM:
            return CallSite(library, f"{os.path.basename(name)}:{frame.f_lineno}")
        if owner is Owner.LIBRARY:
            library = library or str(frame.f_globals.get("__name__", "")).partition(".")[0]
        frame = frame.f_back
    return CallSite(library)
