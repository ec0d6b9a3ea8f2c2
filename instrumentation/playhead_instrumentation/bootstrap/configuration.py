"""The settings of this process: its environment and the configuration files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playhead_semconv.errors import ConfigurationError
from playhead_semconv.settings import Settings, resolve


def settings_of_process(flags: Mapping[str, Any] | None = None) -> tuple[Settings, str]:
    """The settings, and what is wrong with them (empty: nothing).

    A mistake in a file or variable must not stop the program: then the environment alone counts, and
    where that is wrong too, the defaults with ``flags``.
    """
    problem = ""
    nothing: Mapping[str, str] = {}
    tries = ((os.environ, True), (os.environ, False), (nothing, False))
    for environ, with_files in tries:
        try:
            files = configuration_files(Path.cwd(), Path.home()) if with_files else ()
            return resolve(environ, flags=flags, files=files).settings, problem
        except (ConfigurationError, OSError, RuntimeError) as mistake:
            problem = problem or str(mistake)
    return Settings(), problem


def configuration_files(folder: Path, home: Path) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The tables of the nearest ``pyproject.toml`` and of the user's file, strongest first.

    `ConfigurationError` where one of them is not TOML.
    """
    found: list[tuple[str, dict[str, Any]]] = []
    for parent in (folder, *folder.parents):
        project = parent / "pyproject.toml"
        if project.is_file():
            table = _read(project).get("tool", {}).get("playhead")
            if isinstance(table, dict):
                found.append((str(project), dict[str, Any](table)))  # pyright: ignore[reportUnknownArgumentType]
            break
    base = os.environ.get("XDG_CONFIG_HOME")
    user = (Path(base) if base else home / ".config") / "playhead" / "config.toml"
    if user.is_file():
        found.append((str(user), _read(user)))
    return tuple(found)


def _read(path: Path) -> dict[str, Any]:
    import tomllib  # most processes have no such file

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"{path} is not TOML", cause=str(problem)) from None
