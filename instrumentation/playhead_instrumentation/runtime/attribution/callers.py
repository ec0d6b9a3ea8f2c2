"""Attribution of a call to a library and a line of the program."""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_STANDARD: Final = tuple(
    os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")
)
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OWN: Final = str(Path(__file__).parents[2]) + os.sep


@dataclass(frozen=True, slots=True)
class CallSite:
    """The library and the line of the program that call."""

    library: str = ""
    """The nearest installed package on the stack; empty where the program itself calls."""
    place: str = ""
    """``agent.py:12``: the nearest line of the program; empty where none is on the stack."""


def installed(path: str) -> bool:
    """Whether a file belongs to an installed package, the standard library or playhead."""
    return path.startswith(("<frozen", *_STANDARD, _OWN)) or any(part in path for part in _INSTALLED)


def caller(depth: int) -> CallSite:
    """The caller of the code ``depth`` frames above this function."""
    library = ""
    frame = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(("<", *_STANDARD, _OWN)):
            if not any(part in name for part in _INSTALLED):
                return CallSite(library, f"{os.path.basename(name)}:{frame.f_lineno}")
            library = library or str(frame.f_globals.get("__name__", "")).partition(".")[0]
        frame = frame.f_back
    return CallSite(library)
