"""The configuration of a replay (where it runs, what it may do) and its result."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.report.report import Report
from playhead_replay.run.command import Command
from playhead_replay.runner.isolation import Withheld
from playhead_replay.runner.process_start import child_environment, interpreter_for, with_providers
from playhead_replay.runner.warm_processes import Warm


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a recorded program runs again, and with which environment."""

    python: str = ""
    """The interpreter, a path or a name; empty: the recorded one."""
    folder: str | Path = ""
    """Folder of the program; empty: the recorded folder."""
    environ: Mapping[str, str] | None = None
    """Environment that the program inherits; None: the environment of this process."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Headers that replace those of a recorded request to a service, by lower-case name."""
    foreign: bool = False
    """Whether somebody else recorded it: its interpreter and unsafe variables are not taken over."""

    @property
    def inherited(self) -> Mapping[str, str]:
        """The environment that the program inherits."""
        return os.environ if self.environ is None else self.environ

    def command_of(self, command: Command, *, live: bool) -> Command:
        """The recorded ``command``, as far as it can be trusted. ``live``: it will run for real."""
        return command.from_elsewhere(live=live) if self.foreign else command

    def interpreter_of(self, command: Command) -> str:
        """The Python that runs ``command``. `UsageError` if ``python`` is not an interpreter."""
        return interpreter_for(command, self.python)

    def environment_of(self, command: Command, *, live_model: bool = False) -> dict[str, str]:
        """The environment of ``command``, with stand-ins for credentials.

        ``live_model``: those of providers are real, and so are their addresses.
        """
        child = child_environment(command, self.inherited)
        return with_providers(child, self.inherited) if live_model else child


@dataclass(frozen=True, slots=True)
class Rules:
    """What a replay may do besides answering from the tape, and what else it checks."""

    live: Collection[str] = ()
    """Tools that run for real, by name."""
    allow: Collection[str] = ()
    """Hosts that may be reached when the tape has no answer."""
    force: bool = False
    """Execute a script even if it has changed."""
    repeat_effects: bool = False
    """Allow real changes to files when neither the tape nor the kernel can prevent them."""
    strict_match: bool = False
    """Treat a replay as failed if requests differ in volatile values."""
    checks: Collection[str | Path] = ()
    """Files of check functions that inspect each span."""
    live_model: bool = False
    """Make all calls of models for real; the tape answers the rest, however often it is asked."""

    @property
    def withheld(self) -> Withheld:
        """What the kernel is asked to withhold from the program."""
        is_connected = bool(self.live or self.allow or self.live_model)
        return Withheld(network=not is_connected, files=not self.live)

    def words(self) -> list[str]:
        """The rules as command-line options of the replaying process."""
        files = [os.path.abspath(path) for path in self.checks]
        given = ("--live", self.live), ("--allow", self.allow), ("--check", files)
        words = [word for option, names in given for name in names for word in (option, name)]
        return words + (["--live-model"] if self.live_model else [])

    def real(self) -> Iterator[str]:
        """What may run for real, in words."""
        yield from (f"tool {name}" for name in self.live)
        yield from (f"host {name}" for name in self.allow)
        if self.live_model:
            yield "calls of models"


def _silent(_: str) -> None: ...


@dataclass(frozen=True, slots=True)
class ReplayConfiguration:
    """Everything a `Replayer` needs to know; by default it replays here and nothing is real."""

    environment: Environment = Environment()
    rules: Rules = Rules()
    keep: Path | None = None
    """Path to which the tape of the replay is written."""
    say: Callable[[str], None] = _silent
    """Receives a line per difference from the recorded environment, before anything is started."""
    warm: Warm | None = None
    """Pool of warm processes that can save the import of the program's libraries."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a finished replay."""

    report: Report
    now: IndexedTape
    """The tape of the replay."""
    returncode: int
    """Exit status of the program, negative for a signal."""
    stdout: bytes
    stderr: bytes
    warm: bool = False
    """Whether it ran in a fork of a warm process."""
