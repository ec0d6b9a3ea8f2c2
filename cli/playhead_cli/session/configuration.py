"""Reads settings from configuration files, the environment and flags."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playhead_core.errors import ConfigurationError
from playhead_core.settings import Resolved, environment_name, resolve

Table = tuple[str, Mapping[str, Any]]


def resolved_settings(
    environ: Mapping[str, str],
    *,
    flags: Mapping[str, Any] | None = None,
    config: Path | None = None,
    no_config: bool = False,
    cwd: Path,
) -> Resolved:
    """Return every setting with the source of its value.

    ``config``: the one file to read instead of the nearest ``pyproject.toml`` and the user's own file.
    `ConfigurationError` for a file that cannot be read and for values that `resolve` rejects.
    """
    return resolve(environ, flags=flags, files=tables(environ, config, no_config, cwd))


def tables(
    environ: Mapping[str, str], config: Path | None, no_config: bool, cwd: Path
) -> tuple[Table, ...]:
    """Tables of the configuration files, in descending precedence."""
    if no_config:
        return ()
    if config is not None:
        return (_table(config, must=True),)
    found: list[Table] = []
    for folder in (cwd, *cwd.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            found.append(_table(path))
            break
    own = user_config(environ)
    if own.is_file():
        found.append(_table(own))
    return tuple(found)


def user_config(environ: Mapping[str, str]) -> Path:
    """``~/.config/playhead/config.toml``, or under ``XDG_CONFIG_HOME``."""
    base = environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "playhead" / "config.toml"


def _table(path: Path, must: bool = False) -> Table:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"no configuration file at {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as problem:
        if path.name == "pyproject.toml" and not must:
            return str(path), {}  # not an error of ours: the file may be meant for another tool
        raise ConfigurationError(f"{path} cannot be read", cause=str(problem)) from None
    if path.name == "pyproject.toml":
        content = content.get("tool", {}).get("playhead", {})
    return str(path), content


def for_children(resolved: Resolved) -> dict[str, str]:
    """Variables that give a child process the same settings.

    Values that it inherits anyway, and defaults, are left out.
    """
    child: dict[str, str] = {}
    for name, origin in resolved.origins.items():
        if origin == "default" or origin.startswith("environment"):
            continue
        value = getattr(resolved.settings, name)
        child[environment_name(name)] = str(value).lower() if value in (True, False) else str(value)
    return child
