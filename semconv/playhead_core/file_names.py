r"""File names that are not UTF-8, as text that a tape can hold.

Python keeps the bytes of a name that are not UTF-8 as lone surrogates (PEP 383), which neither
MessagePack nor JSON can hold. On a tape they are escapes: the name ``b"a\xff"`` is ``a\udcff`` there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from playhead_core.errors import PathOutside
from playhead_core.lazy_patterns import lazy

_SPECIAL: Final = lazy(r"[\ud800-\udfff]|\\(?=u(?:dc[89a-f][0-9a-f]|005c))")
_ESCAPE: Final = lazy(r"\\u(dc[89a-f][0-9a-f]|005c)")


def tape_name(name: str) -> str:
    """Return the name of a file as text without lone surrogates."""
    if name.isascii() and "\\" not in name:
        return name
    return _SPECIAL.sub(lambda found: f"\\u{ord(found[0]):04x}", name)


def real_name(text: str) -> str:
    """The inverse of `tape_name`, for names that a file can have."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


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
