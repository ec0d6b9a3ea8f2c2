"""Which distributions are installed, read from the first lines of their metadata.

`importlib.metadata` says the same. It takes more than twice as long, which every start of a recording
would pay. A replay asks other interpreters with the text of this module: it imports the standard library
only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

HEAD_BYTES = 1 << 12
"""Name and version are among the first lines of their file."""
METADATA = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}
"""Ending of a folder beside the packages → the file in it; an ``.egg-info`` may be that file."""


def installed(path: Iterable[str]) -> list[str]:
    """Installed distributions as name==version, sorted. ``path``: as `sys.path`.

    What cannot be read is left out.
    """
    found: set[str] = set()
    for folder in path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            file = METADATA.get(os.path.splitext(name)[1])
            if file is not None:
                found |= _said(os.path.join(folder, name), file)
    return sorted(found, key=str.lower)


def _said(place: str, file: str) -> set[str]:
    said: dict[bytes, str] = {}
    try:
        try:
            head = _head(os.path.join(place, file))
        except NotADirectoryError:
            head = _head(place)
    except OSError:
        return set()
    for line in head.split(b"\n"):
        word, colon, value = line.partition(b": ")
        if not colon or len(said) == 2:
            break
        if word in (b"Name", b"Version"):
            said[word] = value.decode("utf-8", "replace").strip()
    return {f"{said[b'Name']}=={said[b'Version']}"} if len(said) == 2 else set()


def _head(path: str) -> bytes:
    """Return the beginning of a file. OSError."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        return os.read(file, HEAD_BYTES)
    finally:
        os.close(file)
