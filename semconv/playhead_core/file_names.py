r"""File names that are not UTF-8, as text that a tape can hold.

Python keeps the bytes of a name that are not UTF-8 as lone surrogates (PEP 383), which neither
MessagePack nor JSON can hold. On a tape they are escapes: the name ``b"a\xff"`` is ``a\udcff`` there.
"""

from __future__ import annotations

import re
from typing import Final

_SPECIAL: Final = re.compile(r"[\ud800-\udfff]|\\(?=u(?:dc[89a-f][0-9a-f]|005c))")
_ESCAPE: Final = re.compile(r"\\u(dc[89a-f][0-9a-f]|005c)")


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
