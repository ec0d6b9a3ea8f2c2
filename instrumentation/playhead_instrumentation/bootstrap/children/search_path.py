"""Puts the folder that starts recording in Python children on their search path."""

from __future__ import annotations

import os
from collections.abc import Mapping

SITE = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, "site"))
"""The folder, which holds a ``sitecustomize``."""


def with_site(environ: Mapping[str, str]) -> str:
    """``PYTHONPATH`` with `SITE` in front."""
    path = [SITE, *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.pathsep.join(dict.fromkeys(path))
