"""Decides which paths a snapshot excludes: those that git ignores, and folders of tools."""

from __future__ import annotations

import os
import re
from typing import Final

from pathspec import GitIgnoreSpec

TOOL_FOLDERS: Final = frozenset(
    (".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".mypy_cache")
)
"""Names of folders that are always excluded."""

NO_RULE: Final = (ValueError, re.error, RecursionError, OverflowError)
"""Exceptions for a line that is not a valid pattern."""

RULES: Final = ".gitignore"
_MOST_BYTES: Final = 1 << 18
"""Size of the largest file of rules that is used."""
_MOST_ABOVE: Final = 32
"""Number of folders above the working folder that are searched for rules."""


class Ignoring:
    """The rules for a folder and below: its own, then those of the folders above."""

    def __init__(self, folder: str, rules: bytes, above: Ignoring | None) -> None:
        """``folder``: absolute. ``rules``: of its ``.gitignore``; ``above``: those of its parent."""
        self._folder = folder + os.sep if folder != os.sep else folder
        self._above = above
        self._spec: GitIgnoreSpec | None = None
        if rules.strip():
            self._spec = _compiled(rules.decode("utf-8", "replace").splitlines())

    @classmethod
    def at(cls, folder: str) -> Ignoring | None:
        """Return the rules of the folders above ``folder``, up to the root of its repository."""
        above: list[str] = []
        place = folder
        while not os.path.lexists(os.path.join(place, ".git")):
            parent = os.path.dirname(place)
            if parent == place or len(above) > _MOST_ABOVE:
                return None  # not in a repository
            above.append(parent)
            place = parent
        found: Ignoring | None = None
        for one in reversed(above):
            found = cls(one, rules_in(os.path.join(one, RULES)), found)
        return found

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Whether a path below the folder is excluded. ``path``: absolute."""
        rules: Ignoring | None = self
        while rules is not None:
            if rules._spec is not None:
                inside = path[len(rules._folder) :] + ("/" if is_folder else "")
                included = rules._spec.check_file(inside).include
                if included is not None:
                    return included
            rules = rules._above
        return False


def _compiled(lines: list[str]) -> GitIgnoreSpec:
    """Compile the rules of a file without invalid lines."""
    try:
        return GitIgnoreSpec.from_lines(lines)
    except NO_RULE:
        return GitIgnoreSpec.from_lines(line for line in lines if _is_rule(line))


def _is_rule(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except NO_RULE:
        return False
    return True


def rules_in(path: str) -> bytes:
    """Return the content of a file of rules; empty if there is none that can be used."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        data = os.read(fd, _MOST_BYTES + 1)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return data if len(data) <= _MOST_BYTES else b""
