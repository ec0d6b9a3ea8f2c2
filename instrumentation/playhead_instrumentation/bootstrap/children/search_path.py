"""The folder that makes the Python children of a process record too, on their search path."""

from __future__ import annotations

import os
from collections.abc import Mapping

SITE = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, "site"))
"""It holds a ``sitecustomize``."""


def with_site(environ: Mapping[str, str]) -> str:
    """``PYTHONPATH`` with `SITE` in front."""
    path = [SITE, *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.pathsep.join(dict.fromkeys(path))
