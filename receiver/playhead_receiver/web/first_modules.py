"""Which modules a browser needs to begin with, so that it asks for all of them at once."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping

_IMPORTED = re.compile(rb"""(?:^|[;}])\s*(?:import|export)\b[^"';(]*["']([^"']+)["']""", re.MULTILINE)
"""What a module imports when it is loaded; not what it asks for later, with ``import(…)``."""
_MAP = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)


def maps_of(page: bytes) -> list[bytes]:
    """The import maps within a page: what names without a path stand for."""
    return _MAP.findall(page)


def first_modules(files: Mapping[str, bytes], page: bytes, begin: Iterable[str]) -> list[str]:
    """Paths of some modules and of all that they import, directly or not, in the order of their imports.

    ``files``: contents by path. ``page``: where the import map is.
    """
    names: dict[str, str] = {}
    for one in maps_of(page):
        names |= json.loads(one)["imports"]
    found: dict[str, None] = {}
    waiting = list(begin)
    while waiting:
        path = waiting.pop(0)
        if path in found or path not in files:
            continue
        found[path] = None
        for imported in _IMPORTED.findall(files[path]):
            name = imported.decode()
            waiting.append(names.get(name) or posixpath.normpath(posixpath.join(path, "..", name)))
    return list(found)
