"""How a recorded program is started again: interpreter, command line, environment."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from playhead_core.errors import UsageError
from playhead_core.process.environment import is_kept
from playhead_core.rerun.headers import PLACEHOLDER, write_headers
from playhead_replay.run.command import Command
from playhead_replay.run.inbound_requests import InboundRequest

STAND_IN = "playhead-replay"
"""Value of a credential that the program needs to start and that is not on the tape."""

_LOGIN = re.compile(rf"(?<=[:/]){re.escape(PLACEHOLDER)}(?=@)")
"""A credential that was taken out of an address. What stands there instead is no address to parsers."""

CREDENTIALS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
"""Credentials that get the stand-in if the tape does not say which variables the program had."""

PROVIDERS = ("OPENAI_", "ANTHROPIC_", "AZURE_OPENAI_", "GOOGLE_CLOUD_", "HTTP_PROXY", "HTTPS_PROXY")
"""Beginnings of variables that say where models are reached, and with which credentials."""

DROPPED = ("TRACEPARENT", "TRACESTATE", "OTEL_", "PLAYHEAD_")
"""Prefixes of variables that belong to the launcher and not to the program."""

STARTERS = (
    os.path.join("opentelemetry", "instrumentation", "auto_instrumentation"),
    os.path.join("playhead_instrumentation", "bootstrap", "site"),
)
"""Endings of folders on PYTHONPATH that made the recorded program record itself."""


@dataclass(frozen=True, slots=True)
class Start:
    """One process to be started."""

    interpreter: str
    program: list[str]
    """The command line after the interpreter."""
    environ: dict[str, str]
    """Its complete environment."""
    folder: Path
    """Its working folder."""
    scratch: Path
    """Folder for its tapes and output."""
    options: tuple[str, ...] = ()
    """Options of the interpreter."""


def interpreter_for(command: Command, python: str = "") -> str:
    """The Python that runs the program: ``python``, else the recorded one, else this one."""
    if python:
        found = shutil.which(python)
        if found is None:
            raise UsageError(f"no interpreter {python}", hint="playhead replay RUN --python PATH")
        return found
    recorded = shutil.which(command.interpreter) if command.interpreter else None
    return recorded or sys.executable


def child_environment(command: Command, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the replayed program.

    It is the recorded environment, as far as the tape has it, on top of ``environ``: those variables
    that a recording keeps, since a tape could name any. Credentials are replaced by a stand-in, so that
    clients can be constructed and no real credential is available.
    """
    recorded = {name: value for name, value in command.environment.items() if is_kept(name)}
    child = {
        name: value
        for name, value in environ.items()
        if not name.startswith(DROPPED) and not (recorded and is_kept(name))
    }
    child.update((name, _LOGIN.sub(STAND_IN, value)) for name, value in recorded.items())
    wanted = [name for name, value in recorded.items() if not value] if recorded else CREDENTIALS
    child.update(dict.fromkeys(wanted, STAND_IN))
    child["PYTHONHASHSEED"] = command.hash_seed if command.hash_seed.isdigit() else "0"
    path = [one for one in child.pop("PYTHONPATH", "").split(os.pathsep) if one]
    path = [one for one in path if not one.endswith(STARTERS)]
    if path:
        child["PYTHONPATH"] = os.pathsep.join(path)
    return child


def with_providers(child: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """``child`` with the addresses and credentials of providers that ``environ`` has.

    Of a provider that ``environ`` names, what was recorded is left out.
    """
    there = tuple(one for one in PROVIDERS if any(name.startswith(one) for name in environ))
    kept = {name: value for name, value in child.items() if not name.startswith(there)}
    given = {name: value for name, value in environ.items() if name.startswith(there)}
    withheld = (name for name, value in kept.items() if value == STAND_IN and environ.get(name))
    return {**kept, **given, **{name: environ[name] for name in withheld}}


def program_of(command: Command, came: Sequence[InboundRequest]) -> list[str]:
    """The command line of the program; for a spawned worker, which has none, its application."""
    if came and command.script in ("", "-", "-c"):
        return ["-m", came[0].application.partition(":")[0]]
    return command.words()


def laid_headers(scratch: Path, headers: Mapping[str, str]) -> Path:
    """Write ``headers`` to a file from which the replaying process reads them."""
    path = scratch / "headers.json"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(write_headers(headers))
    return path
