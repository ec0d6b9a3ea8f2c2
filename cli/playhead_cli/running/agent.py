"""The program behind ``playhead record``: its command, interpreter and environment."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from playhead_cli.running.kept_provider import found_by
from playhead_cli.running.receiver_token import token_for
from playhead_cli.session.configuration import for_children
from playhead_cli.session.session import Session
from playhead_core.errors import ConfigurationError, UsageError
from playhead_core.settings import Resolved, Settings
from playhead_receiver.system.defaults import data_dir
from playhead_receiver.system.writer_lock import Listening, destination_of

HASH_SEED = "0"
"""PYTHONHASHSEED of a recording unless the user has set one, because set order is an input too."""

LEVEL = "strict"
"""Recording level of ``playhead record`` unless the user has set one."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A program to be recorded."""

    words: tuple[str, ...]
    """SCRIPT and its arguments, ``-m`` MODULE and its arguments, or a command."""
    is_command: bool = False
    """Whether it is an arbitrary command and not something that Python runs."""

    @property
    def name(self) -> str:
        """Its name in a line of text."""
        word = self.words[1] if self.words[0] == "-m" else self.words[0]
        return os.path.basename(word)

    def command_line(self, python: str) -> list[str]:
        """Return the command line of the child process."""
        if self.is_command:
            return [python, "-m", "playhead_instrumentation", "command", "--", *self.words]
        return [python, "-m", "playhead_instrumentation", "record", "--", *self.words]


def parse_agent(words: Sequence[str]) -> Agent:
    """Return the program given by the words after the options. `UsageError` if there is none."""
    is_command = bool(words) and words[0] == "--"
    rest = tuple(words[1:] if is_command else words)
    if not rest or (rest[0] == "-m" and len(rest) == 1):
        raise UsageError("no program to record", hint="playhead record SCRIPT [ARGS]")
    if rest[0] == "-m":
        return Agent(rest)
    if Path(rest[0]).is_file() and not (is_command and os.access(rest[0], os.X_OK)):
        return Agent(rest)
    if Path(rest[0]).is_dir() and Path(rest[0], "__main__.py").is_file():
        return Agent(rest)
    if is_command and shutil.which(rest[0]) is not None:
        return Agent(rest, is_command=True)
    if not is_command and shutil.which(rest[0]) is not None:
        raise UsageError(f"no script {rest[0]} here", hint=f"playhead record -- {rest[0]}")
    raise UsageError(f"no script {rest[0]}", hint="playhead record SCRIPT [ARGS]")


def agent_python(python: str, environ: Mapping[str, str]) -> str:
    """Return the agent's interpreter: ``python``, else that of the active venv, else ours."""
    if python:
        found = shutil.which(python)
        if found is None:
            raise UsageError(f"no interpreter {python}", hint="playhead record --python PATH SCRIPT")
        return found
    active = environ.get("VIRTUAL_ENV")
    candidate = os.path.join(active, "bin", "python") if active else ""
    return candidate if candidate and os.access(candidate, os.X_OK) else sys.executable


def delivering_to(settings: Settings, receiver: Listening) -> Settings:
    """``settings`` for the receiver of the data folder."""
    return replace(
        settings,
        endpoint=receiver.http,
        protocol="http/protobuf",
        endpoint_kind="playhead",
        token=token_for(settings, receiver),
        destination=data_destination(settings),
    )


def data_destination(settings: Settings) -> str:
    """Return the identity of a receiver, independent of its address: folder and store."""
    return destination_of(data_dir(settings), settings.store)


def recorded_environment(
    environ: Mapping[str, str], resolved: Resolved, receiver: Listening | None
) -> dict[str, str]:
    """Return the environment of a recorded agent.

    ``receiver``: that of the data folder; None if the user gave an endpoint, which is kept.
    """
    settings = for_children(resolved)
    settings.pop("PLAYHEAD_STORE", None)  # the agent must not get access to the database
    child = {**environ, **settings}
    child.setdefault("PYTHONHASHSEED", HASH_SEED)
    child["PLAYHEAD_LEVEL"] = resolved.settings.level or LEVEL
    if receiver is not None:
        child["PLAYHEAD_ENDPOINT"] = receiver.http
        child["PLAYHEAD_PROTOCOL"] = "http/protobuf"
        child["PLAYHEAD_ENDPOINT_KIND"] = "playhead"
        child["PLAYHEAD_DESTINATION"] = data_destination(resolved.settings)
        child.pop("PLAYHEAD_TOKEN", None)
        if token := token_for(resolved.settings, receiver):
            child["PLAYHEAD_TOKEN"] = token
    return child


def with_kept_provider(
    session: Session, environ: Mapping[str, str], words: Sequence[str], folder: Path
) -> Mapping[str, str]:
    """Return ``environ`` with the address of the kept demo provider if the program is an example.

    ``words``: the program's command, given in ``folder``.
    """
    try:
        found = found_by(words, folder, environ, session.data_dir)
    except ConfigurationError:
        return environ  # reported later, when the settings are needed
    if not found:
        return environ
    session.say("using the demo's provider; to stop it: playhead demo --stop")
    return {**environ, **found}
