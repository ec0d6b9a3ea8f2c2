"""Paths from a tape, a golden or a name: they must stay below their folder."""

from __future__ import annotations

import os
from pathlib import Path

from playhead_core.errors import PathOutside


def below(name: str) -> bool:
    """Whether a relative path names something below the folder that it starts from, disregarding links.

    >>> below("a/../b"), below("../b"), below("/b"), below("."), below(".//b")
    (True, False, False, False, True)
    """
    plain = os.path.normpath(name)
    return not (plain in (".", "..") or plain.startswith(("/", "../")) or "\0" in name)


def inside(folder: str | os.PathLike[str], name: str) -> Path:
    """Return where the relative path ``name`` lies below ``folder``, following links on the way.

    Whether the last component is a link is not checked. Raises `PathOutside` if the path leaves
    ``folder``.
    """
    root = os.path.realpath(folder)
    above, last = os.path.split(os.path.normpath(os.path.join(root, name)))
    found = os.path.realpath(above)
    if not below(name) or os.path.commonpath((root, found)) != root:
        raise PathOutside(f"{name!r} does not lie below {root}", hint="name something in that folder")
    return Path(found, last)
