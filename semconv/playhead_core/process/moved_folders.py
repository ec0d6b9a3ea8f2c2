"""Maps the folders of a recorded process to where they are now, for one spelling of both.

A replay elsewhere reads and prints other paths than its recording: of the project, the virtual
environment, the standard library, the home folder. Paths on its tape are spelled as they were recorded,
so that a request or a line of output with such a path is the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

_BEFORE = r"(?:(?<![\w.\-/])|(?<=\\n)|(?<=\\t)|(?<=\\r)|(?<=://))"
"""The place before a path; the escapes are those of JSON."""
_BEHIND = r"(?![\w\-]|\.\w)"
"""The place after a folder's name."""


class Places:
    """Replaces folders of one side by those of the other, the longest first."""

    def __init__(self, folders: Iterable[tuple[str, str]]) -> None:
        """``folders``: pairs of a folder and its replacement; equal ones stay unchanged."""
        pairs = {one.rstrip("/"): other.rstrip("/") for one, other in folders}
        changed = any(one != other for one, other in pairs.items())
        self._text: dict[str, str] = {}
        for one, other in pairs.items() if changed else ():
            if one and other:
                self._text[one] = other
                self._text.setdefault(json.dumps(one)[1:-1], json.dumps(other)[1:-1])
        names = "|".join(re.escape(one) for one in sorted(self._text, key=len, reverse=True))
        pattern = f"{_BEFORE}(?:{names}){_BEHIND}"
        self._pattern = re.compile(pattern) if names else None
        self._bytes = re.compile(pattern.encode()) if names else None
        self.any = bool(names)
        """Whether anything is replaced."""

    def text(self, text: str) -> str:
        """Return ``text`` with the folders replaced.

        >>> Places([("/home/bo/agent", "/srv/agent")]).text("/home/bo/agent/a.py, /home/bo/agents")
        '/srv/agent/a.py, /home/bo/agents'
        """
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._text[found[0]], text)

    def data(self, data: bytes) -> bytes:
        """As `text`, for bytes; returns the same object where nothing is replaced."""
        if self._bytes is None or self._bytes.search(data) is None:
            return data
        return self._bytes.sub(lambda found: self._text[found[0].decode()].encode(), data)


def folders_of(named: Iterable[str]) -> dict[str, str]:
    """Parse ``name=path`` into folders by name."""
    return dict(word.split("=", 1) for word in named if "=" in word)


def between(here: Mapping[str, str], there: Mapping[str, str]) -> Places:
    """Return the mapping from the folders of one process to those of another.

    The first name of a folder wins.
    """
    pairs: dict[str, str] = {}
    for name, folder in here.items():
        if name in there and len(folder) > 1 and len(there[name]) > 1:
            pairs.setdefault(folder, there[name])
    return Places(pairs.items())
