"""The settings of this process: its environment and the configuration files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from playhead_core.errors import ConfigurationError
from playhead_core.settings import Settings, resolve


def settings_of_process() -> Settings:
    """The settings. Raises `ConfigurationError` where a setting or a file is not valid.

    Nothing may be recorded then, because the intended setting may have been to record less.
    """
    try:
        places = Path.cwd(), Path.home()
    except (OSError, RuntimeError):  # the folder is gone, or the home is unknown
        return resolve(os.environ).settings
    return resolve(os.environ, files=configuration_files(*places)).settings


def configuration_files(folder: Path, home: Path) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The tables of the nearest ``pyproject.toml`` and of the user's file, strongest first.

    Raises `ConfigurationError` where one of them cannot be read or is not TOML.
    """
    found: list[tuple[str, dict[str, Any]]] = []
    for parent in (folder, *folder.parents):
        project = parent / "pyproject.toml"
        if project.is_file():
            table = _read(project, names_playhead=True).get("tool", {}).get("playhead")
            if isinstance(table, dict):
                found.append((str(project), dict[str, Any](table)))  # pyright: ignore[reportUnknownArgumentType]
            break
    base = os.environ.get("XDG_CONFIG_HOME")
    user = (Path(base) if base else home / ".config") / "playhead" / "config.toml"
    if user.is_file():
        found.append((str(user), _read(user)))
    return tuple(found)


def _read(path: Path, *, names_playhead: bool = False) -> dict[str, Any]:
    """The content of a file. ``names_playhead``: nothing if the name does not occur in it."""
    try:
        text = path.read_text("utf-8")
        if names_playhead and "playhead" not in text:
            return {}
        import tomllib  # imported late, because most processes have no such file

        return tomllib.loads(text)
    except ValueError as problem:  # no TOML, or no UTF-8
        raise ConfigurationError(f"{path} is not TOML", cause=str(problem)) from None
    except OSError as problem:
        raise ConfigurationError(f"{path} cannot be read", cause=str(problem)) from None
