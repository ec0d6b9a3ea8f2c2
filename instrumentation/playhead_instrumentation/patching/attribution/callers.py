"""Attribution of a call to a library and a line of the program."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from playhead_instrumentation.patching.attribution.owners import Owner, owner_of


@dataclass(frozen=True, slots=True)
class CallSite:
    """The library and the line of the program that call."""

    library: str = ""
    """The nearest installed package on the stack; empty where the program itself calls."""
    place: str = ""
    """``agent.py:12``: the nearest line of the program; empty where none is on the stack."""


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
