"""The environment of a recorded process: its variables, and where its folders are now.

Variables that are inputs of a run are stored on its tape and restored when it is replayed.

A replay elsewhere reads and prints other paths than its recording: of the project, the virtual
environment, the standard library, the home folder. `Places` spells them as they were recorded, so
that a request or a line of output with such a path is the same.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping

from playhead_core.file_names import real_name
from playhead_core.lazy_patterns import lazy

BEGINNINGS = (
    "LANG",
    "LC_",
    "TZ",
    "PYTHON",
    "PYTEST_",
    "OPENAI_",
    "ANTHROPIC_",
    "AZURE_OPENAI_",
    "GOOGLE_CLOUD_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
ENDINGS = ("_URL", "_ENDPOINT", "_HOST", "_PORT", "_MODEL")
"""Suffixes of variables that name services or models."""

NEVER = ("HOOK", "DSN", "OTEL_", "PLAYHEAD_")
"""Substrings that exclude a variable: addresses that are secrets themselves, and recorder settings."""


def is_kept(name: str) -> bool:
    """Whether the variable ``name`` is kept. Credentials are kept without their values.

    >>> is_kept("OPENAI_API_KEY"), is_kept("TOOLS_URL"), is_kept("SLACK_WEBHOOK_URL"), is_kept("HOME")
    (True, True, False, False)
    """
    if any(word in name for word in NEVER):
        return False
    return name.startswith(BEGINNINGS) or name.endswith(ENDINGS)


HARMLESS = ("PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONDONTWRITEBYTECODE")
"""Variables of Python that do not determine which code runs."""

ADDRESSES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "_URL", "_ENDPOINT", "_HOST", "_PORT")
"""Suffixes of variables that determine where requests, and the credentials in them, are sent."""


def may_be_restored(name: str, *, live: bool) -> bool:
    """Whether a run that somebody else recorded may set the variable ``name``.

    ``live``: the program continues for real; then the run must not determine where requests are sent.

    >>> [may_be_restored(name, live=False) for name in ("TZ", "LD_PRELOAD", "PYTHONPATH")]
    [True, False, False]
    >>> may_be_restored("OPENAI_BASE_URL", live=False), may_be_restored("OPENAI_BASE_URL", live=True)
    (True, False)
    """
    if not is_kept(name) or (name.startswith("PYTHON") and name not in HARMLESS):
        return False
    return not (live and name.upper().endswith(ADDRESSES))


_BEFORE = r"(?:(?<![\w.\-/])|(?<=\\n)|(?<=\\t)|(?<=\\r)|(?<=://))"
"""Matches before a path; the escapes are those of JSON."""
_BEHIND = r"(?![\w\-]|\.\w)"
"""Matches after a folder's name."""


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
        self._pattern = lazy(pattern) if names else None
        self._bytes = lazy(pattern.encode()) if names else None
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


def storable_word(word: str) -> str | bytes:
    """A word of a command line or environment for a fact: text, or bytes if it is not valid UTF-8."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return os.fsencode(word)
    return word


def text_of_word(word: object) -> str:
    """The inverse of `storable_word`."""
    return os.fsdecode(word) if isinstance(word, bytes) else str(word)


def readable(word: str) -> str:
    r"""A word of a command line for display: bytes that are not UTF-8 are escaped.

    >>> readable("x\udcff")
    'x\\xff'
    """
    return word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def folders_of(named: Iterable[str]) -> dict[str, str]:
    """Parse ``name=path`` into folders by name."""
    return dict(real_name(word).split("=", 1) for word in named if "=" in word)


def between(here: Mapping[str, str], there: Mapping[str, str]) -> Places:
    """Return the mapping from the folders of one process to those of another.

    The first name of a folder wins.
    """
    pairs: dict[str, str] = {}
    for name, folder in here.items():
        if name in there and len(folder) > 1 and len(there[name]) > 1:
            pairs.setdefault(folder, there[name])
    return Places(pairs.items())
