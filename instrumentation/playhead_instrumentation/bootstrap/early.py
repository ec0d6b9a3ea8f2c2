"""What a process does before it imports anything that records: read variables, or run another program.

Import nothing but the standard library here: a process in which recording is switched off must not pay
for it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

VARIABLES = ("PLAYHEAD_DISABLED", "OTEL_SDK_DISABLED")
"""The first of these variables that is set decides, as for the setting ``disabled``."""

TRUE = ("1", "true", "yes", "on")


def switched_off() -> bool:
    """Whether recording is switched off. Invalid values are handled with the settings."""
    value = next(filter(None, map(os.environ.get, VARIABLES)), "")
    return value.lower() in TRUE


SITE = os.path.abspath(os.path.join(os.path.dirname(__file__), "site"))
"""Folder with a ``sitecustomize`` that starts recording in Python children."""


def with_site(environ: Mapping[str, str]) -> str:
    """``PYTHONPATH`` with `SITE` in front."""
    others = environ.get("PYTHONPATH", "")  # an empty item of it is the working folder
    path = [SITE, *(others.split(os.pathsep) if others else ())]
    return os.pathsep.join(dict.fromkeys(path))


def run_instead(words: list[str]) -> None:
    """Replace this process by the program in ``words``, which may begin with ``--``. Never returns.

    Any Python process that it is or starts is recorded.
    """
    words = words[1:] if words[:1] == ["--"] else words
    from playhead_core.process.coerced_locale import as_started  # few processes run a command

    environ = as_started(os.environ)
    if not switched_off():
        environ["PYTHONPATH"] = with_site(environ)
    for number in signal.SIGPIPE, signal.SIGXFSZ:
        signal.signal(number, signal.SIG_DFL)  # this interpreter ignores them; the program shall not
    try:
        os.execvpe(words[0], words, environ)
    except OSError as problem:
        sys.exit(f"playhead: {words[0]} cannot be started: {problem.strerror}")
