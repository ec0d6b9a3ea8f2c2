"""Start the process of a fork or a resume."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from playhead_replay.launch.replaying import child_environment, interpreter_for, laid_headers
from playhead_replay.launch.surroundings import moved
from playhead_replay.run.command import Command
from playhead_replay.tape_files.tape_file import write_tape_file
from playhead_semconv.errors import UsageError
from playhead_semconv.rerun.plans import Plan, write_plan
from playhead_semconv.tape.protocols import Tape


@dataclass(frozen=True, slots=True)
class Prepared:
    """A process that is ready to be started."""

    words: list[str]
    """Its command line."""
    environ: dict[str, str]
    """What its program had, over what it inherits; nothing of playhead's own yet."""
    lacking: list[str]
    """Credentials that the program had, and that nobody has given now."""


def prepare(
    tape: Tape,
    plan: Plan,
    scratch: Path,
    *,
    python: str = "",
    folder: Path,
    environ: Mapping[str, str],
    forks: Sequence[Tape] = (),
    headers: Mapping[str, str] = {},
    checks: Sequence[str | Path] = (),
    foreign: bool = False,
) -> Prepared:
    """Write what the process reads into ``scratch``; how it is started.

    ``folder``: where the program lies. ``environ``: what it inherits; credentials come from there.
    ``forks``: tapes of processes that it forks. ``headers``: what its requests are asked with.
    ``checks``: files of check functions that look at each span. ``foreign``: somebody else has recorded
    it, so neither interpreter nor every variable is taken.
    """
    command = Command.of_tape(tape)
    command = moved(command.from_elsewhere(live=True) if foreign else command, folder)
    _require_program(command, folder)
    write_tape_file(scratch / "origin.tape", tape)
    (scratch / "plan.json").write_bytes(write_plan(plan))
    words = [interpreter_for(command, python), "-m", "playhead_instrumentation", "fork"]
    words += ["--tape", str(scratch / "origin.tape"), "--plan", str(scratch / "plan.json")]
    if forks:
        write_tape_file(scratch / "forks.tape", forks)
        words += ["--forks", str(scratch / "forks.tape")]
    if headers:
        words += ["--headers", str(laid_headers(scratch, headers))]
    for path in checks:
        words += ["--check", os.path.abspath(path)]
    child = child_environment(command, environ)
    wanted = [name for name, value in command.environment.items() if not value]
    given = {name: environ[name] for name in wanted if environ.get(name)}
    child.update(given)
    lacking = [name for name in wanted if name not in given]
    words += ["--cwd", str(folder), "--", *command.words()]
    return Prepared(words, child, lacking)


def folder_of(command: Command, cwd: str = "") -> Path:
    """Where the program of a run lies. `UsageError` where that is not there."""
    folder = Path(cwd or command.cwd or ".")
    if not os.path.isdir(folder):
        raise UsageError(
            f"the folder of the run is not there: {folder}",
            hint="say where the program lies: --cwd FOLDER",
        )
    return folder.absolute()


def _require_program(command: Command, folder: Path) -> None:
    if command.script in ("", "-", "-c"):
        raise UsageError(
            "the program was not a file: it was given on the command line or on stdin",
            hint="put it into a file: playhead record SCRIPT",
        )
    path = command.script_path(folder)
    if path is not None and not path.is_file():
        raise UsageError(f"{command.script} is not in {folder}", hint="say where: --cwd FOLDER")
