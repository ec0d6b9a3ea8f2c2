"""``playhead artifacts``: list and extract the artifacts of a run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.files import artifact_lines
from playhead_cli.output.words import size
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import find_point
from playhead_cli.targets.run_argument import opened_run, parse_target
from playhead_core.errors import UsageError
from playhead_core.file_names import below
from playhead_replay.workspace.artifacts import artifact_with, artifacts_of

if TYPE_CHECKING:
    from playhead_cli.json_output.files import PrintedArtifacts, PrintedTakenArtifact
    from playhead_replay import Run
    from playhead_replay.workspace.artifacts import Artifact

STDOUT = "-"


@playhead_command("artifacts", short_help="List and extract the artifacts of a run")
@click.argument("target", metavar="[RUN[:POINT]]", required=False, shell_complete=complete_run)
@click.option(
    "--get", "wanted", metavar="DIGEST|NAME", help="Write the content of this artifact to a file."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="File for --get; - is stdout. Default: its name, in this folder. Never overwrites.",
)
def command(session: Session, target: str | None, wanted: str | None, output: str | None) -> None:
    """List the artifacts of a run: those named with playhead.artifact, files that the program wrote, and
    images and documents in messages. Each is listed with its step. With POINT: only those of that step.
    """
    if output is not None and wanted is None:
        raise UsageError("-o is the file of --get", hint="playhead artifacts RUN --get NAME -o FILE")
    asked = parse_target(target)
    with opened_run(session, asked) as run:
        if wanted is not None:
            _take(session, run, artifact_with(run, wanted), output)
            return
        found = artifacts_of(run)
        if asked.point:
            number = find_point(run, asked.point).step.number
            found = [one for one in found if one.step == number]
    _list(session, run, found)


def _list(session: Session, run: Run, found: list[Artifact]) -> None:
    if session.as_json:
        printed: PrintedArtifacts = {
            "schema_version": 1,
            "run": run.name,
            "artifacts": [one.to_json() for one in found],
        }
        session.print_json(printed)
        return
    if not found:
        session.say(f"no artifacts in {run.name}")
        return
    print_lines(session, artifact_lines(found), paged=True)
    first = next((one for one in found if one.digest), None)
    if first is not None:
        session.suggest(f"playhead artifacts {run.name} --get {first.digest[:12]}")


def _take(session: Session, run: Run, one: Artifact, output: str | None) -> None:
    data = one.read()
    if output == STDOUT:
        sys.stdout.buffer.write(data)
        return
    path = Path(output or _file_name(one))
    try:
        with path.open("wb" if output else "xb") as file:
            file.write(data)
    except FileExistsError:
        raise UsageError(f"{path} already exists", hint="choose another file: -o FILE") from None
    except OSError as problem:
        raise UsageError(f"{path} cannot be written", cause=str(problem)) from problem
    if session.as_json:
        printed: PrintedTakenArtifact = {
            "schema_version": 1,
            "run": run.name,
            "artifact": one.to_json(),
            "file": os.path.abspath(path),
        }
        session.print_json(printed)
        return
    session.say(f"wrote {path}: {size(len(data))}")


def _file_name(one: Artifact) -> str:
    """Return the last part of its name, if that is a safe file name; else its digest."""
    name = one.name.replace("\\", "/").rpartition("/")[2]
    plain = name.isprintable() and below(name) and not name.startswith((".", "-", "~"))
    return name if plain and len(os.fsencode(name)) <= 200 else one.digest[:32]
