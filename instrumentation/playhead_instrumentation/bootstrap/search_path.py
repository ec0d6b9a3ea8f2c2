"""The folder that makes the Python children of a process record too, on their search path."""

from __future__ import annotations

import os
from collections.abc import Mapping

SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")
"""It holds a ``sitecustomize``."""


def with_site(environ: Mapping[str, str]) -> str:
    """``PYTHONPATH`` with `SITE` in front."""
    path = [SITE, *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.pathsep.join(dict.fromkeys(path))
