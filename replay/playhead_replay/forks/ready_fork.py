"""Starts the process of a fork or a resume."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from playhead_core.errors import TapeError, UsageError
from playhead_core.process.environment import Places
from playhead_core.rerun.plans import Plan, write_plan
from playhead_core.tape.protocols import Tape
from playhead_replay.forks.workspace import FOLDER
from playhead_replay.run.command import Command
from playhead_replay.run.held_tapes import held
from playhead_replay.runner.configuration import Environment
from playhead_replay.runner.environment import (
    differences,
    folder_difference,
    here_from,
    moved,
    unrecorded_variables,
    variable_differences,
)
from playhead_replay.runner.process_start import laid_headers
from playhead_replay.tape_files.tape_file import write_tape_file
from playhead_replay.workspace.file_changes import HERE, FileChange, file_changes


@dataclass(frozen=True, slots=True)
class ReadyFork:
    """A process that is ready to start."""

    words: list[str]
    """Its command line."""
    environ: dict[str, str]
    """The recorded environment on top of the inherited one, without playhead's own variables."""
    lacking: list[str]
    """Credentials that the program had and that are not available now."""
    different: list[str]
    """Differences from the recorded environment, one line each: Python, packages, modules, the folder,
    variables, and files that the run has read."""


@dataclass(frozen=True, slots=True)
class Fork:
    """A run that is played up to the end of its cut tape, and goes live from there."""

    tape: Tape
    """What is played; cut where the fork goes live."""
    plan: Plan
    """What happens to open exchanges, and what is edited."""
    forks: Sequence[Tape] = ()
    """Tapes of the processes that it forks, cut too."""

    def prepare(
        self, scratch: Path, around: Environment, checks: Sequence[str | Path] = ()
    ) -> ReadyFork:
        """Write what the process reads into the folder ``scratch``. Returns how it is started.

        ``around``: where the program runs; credentials come from the inherited environment. ``checks``:
        files of check functions that inspect each span. `UsageError` if folder, program or interpreter
        does not exist.
        """
        command = Command.of_tape(self.tape)
        folder = folder_of(command, str(around.folder))
        command = moved(around.command_of(command, live=True), folder)
        _require_program(command, folder)
        write_tape_file(scratch / "origin.tape", self.tape)
        (scratch / "plan.json").write_bytes(write_plan(self.plan))
        interpreter = around.interpreter_of(command)
        words = [interpreter, *command.options, "-m", "playhead_instrumentation", "fork"]
        words += ["--tape", str(scratch / "origin.tape"), "--plan", str(scratch / "plan.json")]
        if self.forks:
            write_tape_file(scratch / "forks.tape", self.forks)
            words += ["--forks", str(scratch / "forks.tape")]
        if around.headers:
            words += ["--headers", str(laid_headers(scratch, around.headers))]
        for path in checks:
            words += ["--check", os.path.abspath(path)]
        # The tape of somebody else does not say where credentials go: who runs it here does.
        child = around.environment_of(command, live_model=around.foreign)
        inherited = around.inherited
        wanted = [name for name, value in command.environment.items() if not value]
        given = {name: inherited[name] for name in wanted if inherited.get(name)}
        child.update(given)
        lacking = [name for name in wanted if name not in given]
        words += ["--cwd", str(folder), "--", *command.words()]
        different = [
            *differences(self.tape, command, folder, interpreter),
            *(() if folder.parent.name == FOLDER else folder_difference(command, folder)),
            *variable_differences(moved(Command.of_tape(self.tape), folder), inherited, child),
            *_taken_from_here(unrecorded_variables(self.tape, command, folder)),
            *changed_files(self.tape, folder, here_from(command, folder)),
        ]
        return ReadyFork(words, child, lacking, different)


def _taken_from_here(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [f"the program reads {', '.join(names)}: not on the tape, so the local values are used"]


def folder_of(command: Command, cwd: str = "") -> Path:
    """The folder of a run's program. `UsageError` if it does not exist."""
    folder = Path(cwd or command.cwd or ".")
    if not os.path.isdir(folder):
        raise UsageError(
            f"the folder of the run does not exist: {folder}",
            hint="name its location: --cwd FOLDER; playhead workspace RUN --to FOLDER restores it",
        )
    return folder.absolute()


def _require_program(command: Command, folder: Path) -> None:
    if command.script in ("", "-", "-c"):
        raise UsageError(
            "the program was not a file, but came from the command line or stdin",
            hint="put it into a file: playhead record SCRIPT",
        )
    path = command.script_path(folder)
    if path is not None and not path.is_file():
        raise UsageError(f"{command.script} is not in {folder}", hint="say where: --cwd FOLDER")


def changed_files(tape: Tape, folder: Path, places: Places) -> Iterator[str]:
    """Name the files that differ from what ``tape`` says the run read, one line each.

    ``folder``: where the run's folder is now; ``places``: maps the other recorded folders. Left out are
    files that the run itself changed, and those that are not on the tape as they were.
    """
    for name, change in _only_read(tape).items():
        data = None if change.redacted else change.data()
        if data is None:
            continue
        local = name.startswith(HERE)
        path = folder / name[len(HERE) :] if local else Path(places.text(name))
        try:
            path = path.expanduser()
            if not path.is_file():
                yield f"{path} does not exist here, but the run has read it"
            elif path.stat().st_size != len(data) or path.read_bytes() != data:
                yield f"{path} has changed since the run read it"
        except (OSError, ValueError, RuntimeError):  # it cannot be read, or such a path cannot exist
            continue


def _only_read(tape: Tape) -> dict[str, FileChange]:
    """What was read last of each file that the run has not changed, by the name on the tape."""
    read: dict[str, FileChange] = {}
    changed: set[str] = set()
    try:
        for change in file_changes(held(tape)):
            if change.what == "seen":
                read[change.name] = change
            else:
                changed.update((change.name, change.to))
    except TapeError:
        return {}  # the tape has no usable account of files
    return {name: change for name, change in read.items() if name not in changed}
