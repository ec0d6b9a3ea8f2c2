"""The locale that a process was started with, which Python changes for itself and its children.

In the C locale an interpreter sets ``LC_CTYPE`` to a UTF-8 one (PEP 538). An interpreter that inherits
that value is no longer in the C locale, so it does not turn its UTF-8 mode on, and other programs find a
variable that their user has not set. What starts a program in place of the user takes it back.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

NAME: Final = "LC_CTYPE"
COERCED: Final = ("C.UTF-8", "C.utf8", "UTF-8")
"""Values that Python sets."""
STARTED: Final = "/proc/self/environ"
"""The variables that this process was started with; later changes are not in it. Linux only."""


def as_started(environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ``, that of this process, with the ``LC_CTYPE`` that Python has not coerced.

    Unchanged if the system does not show what the process was started with.
    """
    environ = dict(environ)
    if environ.get(NAME) not in COERCED:
        return environ
    try:
        with open(STARTED, "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return environ
    before = [word.partition(b"=")[2] for word in words if word.startswith(b"LC_CTYPE=")]
    if before:
        environ[NAME] = os.fsdecode(before[0])
    else:
        del environ[NAME]
    return environ
