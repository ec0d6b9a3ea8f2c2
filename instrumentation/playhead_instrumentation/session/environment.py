"""What a program runs in: folders, its own modules, imported packages, revision.

It is recorded so that a replay elsewhere can report what is different there.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playhead_core.facts import digest_of
from playhead_core.settings import Settings
from playhead_instrumentation.patching.attribution.owners import Owner, in_packages, owner_of
from playhead_semconv import attributes as a

LARGEST_BYTES = 4 << 20
"""Modules above this size are not hashed."""


def folders(cwd: str) -> list[str]:
    """Folders of this process as ``name=path``, the most specific first."""
    found = {
        "cwd": cwd,
        "purelib": sysconfig.get_path("purelib"),
        "stdlib": sysconfig.get_path("stdlib"),
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "home": os.path.expanduser("~"),
    }
    return [f"{name}={path}" for name, path in found.items()]


def own_folders(settings: Settings) -> list[str]:
    """Folders that playhead itself writes to; changes there are not the program's."""
    mac = sys.platform == "darwin"
    data = os.environ.get("XDG_DATA_HOME") or (
        "~/Library/Application Support" if mac else "~/.local/share"
    )
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    found = settings.data_dir or f"{data}/playhead", settings.spool_dir or f"{state}/playhead"
    return [os.path.abspath(os.path.expanduser(path)) for path in found]


def environment_attributes(cwd: str) -> dict[str, Any]:
    """Attributes of the start fact about the surroundings."""
    found = {
        a.PLAYHEAD_RUN_FOLDERS: folders(cwd),
        a.PLAYHEAD_RUN_PLATFORM: f"{sys.implementation.name} {sys.platform} {platform.machine()}",
    }
    revision = revision_of(Path(cwd))
    return found | ({a.VCS_REF_HEAD_REVISION: revision} if revision else {})


class Imported:
    """Reports modules of this process as they are imported. Never raises."""

    def __init__(self, spelt: Callable[[str], str] = str) -> None:
        """``spelt``: converts a path to its spelling on the tape."""
        self._spelt = spelt
        self._files: set[str] = set()
        self._installed: set[str] = set()

    def news(self) -> dict[str, Any]:
        """Attributes for modules imported since the last call; empty if there are none."""
        own: list[str] = []
        installed: set[str] = set()
        for name, module in sys.modules.copy().items():
            path = _file_of(module)
            if not isinstance(path, str) or path in self._files:
                continue
            self._files.add(path)
            if in_packages(path):
                installed.add(name.partition(".")[0])
            elif owner_of(path) is Owner.PROGRAM and not name.startswith("playhead"):
                digest = _digest(path)
                if digest:
                    own.append(f"{self._spelt(os.path.abspath(path))}={digest}")
        installed -= self._installed
        self._installed |= installed
        found: dict[str, Any] = {}
        if own:
            found[a.PLAYHEAD_RUN_MODULES] = sorted(own)
        if installed:
            found[a.PLAYHEAD_RUN_IMPORTED] = sorted(installed)
        return found


def _file_of(module: Any) -> Any:
    """The file of a module. Does not trigger the loading of lazy modules."""
    try:
        return object.__getattribute__(module, "__dict__").get("__file__")
    except Exception:  # `sys.modules` may hold any object
        return None


@functools.cache
def revision_of(folder: Path) -> str:
    """The commit checked out in ``folder``, read from ``.git``; empty if there is none."""
    try:
        for place in (folder, *folder.parents):
            git = place / ".git"
            if git.is_file():  # a worktree or a submodule
                git = (place / git.read_text("utf-8").removeprefix("gitdir:").strip()).resolve()
            if (git / "HEAD").is_file():
                return _head(git)
    except (OSError, ValueError):
        pass
    return ""


def _head(git: Path) -> str:
    head = (git / "HEAD").read_text("utf-8").strip()
    if not head.startswith("ref:"):
        return head
    name = head.removeprefix("ref:").strip()
    common = git / "commondir"
    shared = (git / common.read_text("utf-8").strip()).resolve() if common.is_file() else git
    for place in (git, shared):
        if (place / name).is_file():
            return (place / name).read_text("utf-8").strip()
    packed = shared / "packed-refs"
    lines = packed.read_text("utf-8").splitlines() if packed.is_file() else []
    return next((line.split(" ")[0] for line in lines if line.endswith(f" {name}")), "")


def _digest(path: str) -> str:
    try:
        if os.path.getsize(path) > LARGEST_BYTES:
            return ""
        return digest_of(Path(path).read_bytes()).hex()[:32]
    except OSError:
        return ""
